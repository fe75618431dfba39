package ledger

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/ensign-operator/ensign/internal/kubeapi/children/reduce"
)

// maxWrites bounds what is kept of one CR's writes to one object. They are
// forgotten as the watch catches up, so that more are never needed in practice.
const maxWrites = 64

// record is what is kept of one CR's writes to one object.
type record struct {
	resource        schema.GroupResource
	namespace, name string
	// writes are in the order of their resource versions.
	writes  []version
	deleted bool
	// old is true since the last Sweep.
	old bool
}

type version struct {
	at     string
	digest *reduce.Digest
}

// add puts a version in its place: answers of writes that were sent at once may come in
// another order. A write that changes nothing has the version of the one before.
func (r *record) add(v version) {
	i := len(r.writes)
	for i > 0 && older(v.at, r.writes[i-1].at) {
		i--
	}
	if i > 0 && r.writes[i-1].at == v.at {
		r.writes[i-1].digest = cmp.Or(r.writes[i-1].digest, v.digest)
		return
	}
	r.writes = slices.Insert(r.writes, i, v)
	if len(r.writes) > maxWrites {
		r.writes = r.writes[1:]
	}
}

// explains reports whether the object is as the CR's own writes have left it. What
// the watch shows of the time before the first of them may be another's change
// that it has overwritten; at the watch's beginning it is only old.
func (r *record) explains(change Change) bool {
	for _, w := range slices.Backward(r.writes) {
		switch {
		case w.at == change.ResourceVersion:
			return true
		case older(w.at, change.ResourceVersion):
			return w.digest != nil && *w.digest == change.Digest
		}
	}
	return change.First
}

func (r *record) last() string { return r.writes[len(r.writes)-1].at }

// older reports whether the one resource version comes before the other. Those of
// some aggregated APIs have no order.
func older(one, other string) bool {
	order, err := resourceversion.CompareResourceVersion(one, other)
	return err == nil && order < 0
}

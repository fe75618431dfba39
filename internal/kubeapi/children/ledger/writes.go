package ledger

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/ensign-operator/ensign/internal/kubeapi/children/strip"
)

// maxWrites bounds the writes that are kept for one object and CR. A write is forgotten when
// the watch reaches it, so that this limit is not met in practice.
const maxWrites = 64

// objectWrites are the writes of one CR's runs to one object that the watch has not reached.
type objectWrites struct {
	resource schema.GroupResource
	// writes are in the order of their resource versions.
	writes []write
	// deleted is true once a run has deleted the object.
	deleted bool
	// stale is true where there was no write since the last Sweep.
	stale bool
}

// write is the object's state in the response to a write.
type write struct {
	resourceVersion string
	// digest is nil where the response does not have the whole object.
	digest *strip.Digest
}

// add inserts a write in the order of resource versions: the responses to concurrent writes
// may arrive in another order. A write that changed nothing has the resource version of the
// write before it, and is merged with that one.
func (o *objectWrites) add(added write) {
	i := len(o.writes)
	for i > 0 && older(added.resourceVersion, o.writes[i-1].resourceVersion) {
		i--
	}
	if i > 0 && o.writes[i-1].resourceVersion == added.resourceVersion {
		o.writes[i-1].digest = cmp.Or(o.writes[i-1].digest, added.digest)
		return
	}
	o.writes = slices.Insert(o.writes, i, added)
	if len(o.writes) > maxWrites {
		o.writes = o.writes[1:]
	}
}

// explains reports whether the object is as the CR's own writes have left it. An event that
// is older than the first of them may be a foreign change that the run has overwritten; but
// an initial event is then only outdated.
func (o *objectWrites) explains(change Change) bool {
	for _, w := range slices.Backward(o.writes) {
		switch {
		case w.resourceVersion == change.ResourceVersion:
			return true
		case older(w.resourceVersion, change.ResourceVersion):
			return w.digest != nil && *w.digest == change.Digest
		}
	}
	return change.Initial
}

// older reports whether a comes before b. It is false for resource versions without an order,
// which some aggregated APIs have.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

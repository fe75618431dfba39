package children

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/ensign-operator/ensign/internal/kubeapi/children/ledger"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/reduce"
)

// searchLimit is how long a search goes on for what the store has not come to.
const searchLimit = 30 * time.Second

// miss finds the children that went before any list or watch showed them: between the
// write of a run that made their kind known and the first list of the kind, or while
// the watch was interrupted. What the store has not is looked for again after a pause:
// the store is ahead of what is told of it.
func (f *followed) miss(now time.Time) {
	// The write that made the kind known is noted after that.
	complete, suspects := now.Sub(f.searching) > f.children.limits.missed, map[types.UID]time.Time{}
	for cr, changes := range f.children.ledger.Written(f.kind.resource().GroupResource()) {
		for _, change := range changes {
			switch f.find(change) {
			case absent:
				since, known := f.suspects[change.UID]
				if !known {
					since = now
				}
				if now.Sub(since) < f.children.limits.missed {
					complete, suspects[change.UID] = false, since
					continue
				}
				if f.children.ledger.See(cr, change) {
					f.children.tell(cr, "", whatOf(f.kind.Kind, change, false))
				}
			case unknown:
				complete = false
			case present:
			}
		}
	}
	f.suspects = suspects
	f.children.mu.Lock()
	defer f.children.mu.Unlock()
	f.complete = complete || now.Sub(f.searching) > searchLimit
}

type presence int

const (
	present presence = iota
	absent
	unknown
)

// find reports whether a written object is in its store, and unknown where the store
// has not come as far as the write.
func (f *followed) find(change ledger.Change) presence {
	part, ok := f.partOf(change.Namespace)
	if !ok {
		return present // Nobody looks there.
	}
	object, ok, _ := part.Store().GetByKey(storeKey(change.Namespace, change.Name))
	if kept, is := object.(*reduce.Object); ok && is && kept.UID == change.UID {
		return present
	}
	order, err := resourceversion.CompareResourceVersion(part.Store().LastStoreSyncResourceVersion(), change.ResourceVersion)
	if err != nil || order < 0 {
		return unknown
	}
	return absent
}

func storeKey(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

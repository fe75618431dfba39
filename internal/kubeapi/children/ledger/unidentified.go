package ledger

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
)

// maxUnidentified bounds the writes that are kept for one CR. The oldest one is dropped: the
// CR then gets a run too many.
const maxUnidentified = 256

// unidentifiedWrite is a write whose response is not known, or does not identify the objects.
type unidentifiedWrite struct {
	access.Write

	// explained has the objects of a collection whose event the write has explained.
	explained map[types.UID]bool
	// stale is true once SweepUnidentified has seen the write.
	stale bool
}

// noteUnidentified keeps a write. The caller must hold the lock.
func (l *Ledger) noteUnidentified(cr CR, write access.Write) {
	if l.unidentified == nil {
		l.unidentified = map[CR][]*unidentifiedWrite{}
	}
	l.unidentified[cr] = append(l.unidentified[cr], &unidentifiedWrite{Write: write, explained: map[types.UID]bool{}})
	l.unidentified[cr] = l.unidentified[cr][max(0, len(l.unidentified[cr])-maxUnidentified):]
}

// explainedByUnidentified reports whether one of the writes may have caused the change, and has
// explained no event of the object yet. The caller must hold the lock.
func (l *Ledger) explainedByUnidentified(cr CR, change Change) bool {
	i := slices.IndexFunc(l.unidentified[cr], func(w *unidentifiedWrite) bool { return w.mayCause(change) })
	if i < 0 {
		return false
	}
	w := l.unidentified[cr][i]
	w.explained[change.UID] = true
	if w.Verb != "deletecollection" {
		l.dropUnidentified(func(other *unidentifiedWrite) bool { return other == w })
	}
	if change.Deleting { // The object's end comes once its finalizers are gone.
		if l.objects == nil {
			l.objects = map[objectKey]*objectWrites{}
		}
		key := objectKey{cr, change.UID}
		if l.objects[key] == nil {
			l.objects[key] = &objectWrites{resource: change.Resource}
		}
		l.objects[key].deleted, l.objects[key].stale = true, false
	}
	return true
}

func (w *unidentifiedWrite) mayCause(change Change) bool {
	if !isScope(w.Write, change) || w.explained[change.UID] {
		return false
	}
	switch {
	case w.Deletes():
		return change.Deleted || change.Deleting
	case w.Verb == "create" && w.Subresource == "":
		return change.Created
	default:
		return true // A write that removes the last finalizer deletes the object.
	}
}

// SweepUnidentified forgets the writes that were noted before the previous SweepUnidentified.
func (l *Ledger) SweepUnidentified() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropUnidentified(func(w *unidentifiedWrite) bool {
		old := w.stale
		w.stale = true
		return old
	})
}

// dropUnidentified forgets writes. The caller must hold the lock.
func (l *Ledger) dropUnidentified(which func(*unidentifiedWrite) bool) {
	for cr, writes := range l.unidentified {
		if writes = slices.DeleteFunc(writes, which); len(writes) > 0 {
			l.unidentified[cr] = writes
			continue
		}
		delete(l.unidentified, cr)
	}
}

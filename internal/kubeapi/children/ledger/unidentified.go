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
	// noted is the ledger's moment at which the write was noted.
	noted int
	// before is a version of the object that the write did not make, nor a later one; "" if none is known.
	before string
	// stale is true once SweepUnidentified has seen the write.
	stale bool
}

// noteUnidentified keeps a write. The caller must hold the lock.
func (l *Ledger) noteUnidentified(cr CR, write access.Write) {
	if l.unidentified == nil {
		l.unidentified = map[CR][]*unidentifiedWrite{}
	}
	l.moment++
	l.unidentified[cr] = append(l.unidentified[cr], &unidentifiedWrite{Write: write, explained: map[types.UID]bool{}, noted: l.moment})
	l.unidentified[cr] = l.unidentified[cr][max(0, len(l.unidentified[cr])-maxUnidentified):]
}

// settleUnidentified notes a version that a write has made: no write that ended before it began makes a later one, because
// the API server's update of an object fails if the object has changed since it was read. The caller must hold the lock.
func (l *Ledger) settleUnidentified(by *PendingWrite, version string) {
	for _, w := range l.unidentified[by.cr] {
		same := w.Resource.GroupResource() == by.write.Resource.GroupResource() && w.Namespace == by.write.Namespace && w.Name == by.write.Name && w.Name != ""
		if same && w.noted < by.begun && w.before == "" && !w.Deletes() {
			w.before = version
		}
	}
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
	if !isScope(w.Write, change) || w.explained[change.UID] || w.before != "" && !older(change.ResourceVersion, w.before) {
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

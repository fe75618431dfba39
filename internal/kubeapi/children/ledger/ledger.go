package ledger

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/strip"
)

// CR names a custom resource.
type CR struct {
	Kind schema.GroupKind
	types.NamespacedName
}

// Change is a watch event of one object, as it concerns one CR.
type Change struct {
	Resource        schema.GroupResource
	Namespace, Name string
	UID             types.UID
	ResourceVersion string
	Digest          strip.Digest
	// Created is true where the object is new, Deleting where its deletion has begun, and Deleted
	// where it is gone.
	Created, Deleting, Deleted bool
	// Unchanged is true where the object's digest is that of its previous watch event.
	Unchanged bool
	// Initial is true where the object existed when the watch began. Such an event is a change only
	// if it differs from the writes of the CR's runs.
	Initial bool
	// OwnerUID is the UID of the CR, "" where the object does not name it. By says who made the change, "" where
	// that is not known. The ledger does not use them.
	OwnerUID types.UID
	By       string
}

// WrittenObject is an object in the API server's response to a write of the CR's run. Without a
// UID it stands for the objects of the write that the response does not identify.
type WrittenObject struct {
	UID             types.UID
	ResourceVersion string
	// Digest is nil where the response does not have the whole object.
	Digest *strip.Digest
	// Deleted is true where the object is gone, or where the write began its deletion.
	Deleted bool
}

// PendingWrite is a write that has no response yet.
type PendingWrite struct {
	cr    CR
	write access.Write
	// begun is the ledger's moment of Begin.
	begun int
}

// Ledger keeps the writes of all CRs. The zero Ledger is ready for use.
type Ledger struct {
	mu      sync.Mutex
	objects map[objectKey]*objectWrites
	pending map[CR]*pendingWrites
	// unidentified are the writes whose objects the response did not identify.
	unidentified map[CR][]*unidentifiedWrite
	// moment counts the begun writes, and those in unidentified.
	moment int
}

// objectKey names an object that runs of one CR have written.
type objectKey struct {
	cr  CR
	uid types.UID
}

// pendingWrites are the writes of one CR that have no response yet.
type pendingWrites struct {
	writes []*PendingWrite
	// held are the changes that one of the writes may have caused.
	held []Change
}

// Begin notes a write before it is sent. The caller must call Complete after that.
func (l *Ledger) Begin(cr CR, write access.Write) *PendingWrite {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moment++
	pending := &PendingWrite{cr, write, l.moment}
	if l.pending == nil {
		l.pending = map[CR]*pendingWrites{}
	}
	if l.pending[cr] == nil {
		l.pending[cr] = &pendingWrites{}
	}
	l.pending[cr].writes = append(l.pending[cr].writes, pending)
	return pending
}

// Complete notes the objects in the response to a write: none where the API server has refused it,
// one without a UID where the result is not known.
// It returns the foreign changes among those that Observe has held back for this write.
func (l *Ledger) Complete(pending *PendingWrite, written ...WrittenObject) (foreign []Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ofCR := l.pending[pending.cr]
	ofCR.writes = slices.DeleteFunc(ofCR.writes, func(w *PendingWrite) bool { return w == pending })
	for _, object := range written {
		l.note(pending, object)
	}
	var held []Change
	for _, change := range ofCR.held {
		switch {
		case ofCR.mayCause(change):
			held = append(held, change)
		case l.isForeign(pending.cr, change):
			foreign = append(foreign, change)
		}
	}
	ofCR.held = held
	if len(ofCR.writes) == 0 {
		delete(l.pending, pending.cr)
	}
	return foreign
}

// Observe notes a watch event and reports whether it is a foreign change. It returns false
// where a pending write may have caused the change: Complete returns the change later if it
// is foreign. The caller must pass the changes of one object in their order.
func (l *Ledger) Observe(cr CR, change Change) (foreign bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ofCR := l.pending[cr]; ofCR != nil && ofCR.mayCause(change) {
		ofCR.held = append(ofCR.held, change)
		return false
	}
	return l.isForeign(cr, change)
}

// HasUnseen reports whether the watch has not shown a write of the CR's runs to one of the resources yet.
func (l *Ledger) HasUnseen(cr CR, of func(schema.GroupResource) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, object := range l.objects {
		if key.cr == cr && of(object.resource) && (object.deleted || len(object.writes) > 0) {
			return true
		}
	}
	return false
}

// DropResource forgets the writes to a resource that is not watched any more.
func (l *Ledger) DropResource(resource schema.GroupResource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, object := range l.objects {
		if object.resource == resource {
			delete(l.objects, key)
		}
	}
	l.dropUnidentified(func(w *unidentifiedWrite) bool { return w.Resource.GroupResource() == resource })
}

// Sweep forgets the objects whose last write was noted before the previous Sweep and was never
// observed: the object does not belong to the CR whose run wrote it, or the watch missed it.
func (l *Ledger) Sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, object := range l.objects {
		if object.stale {
			delete(l.objects, key)
		}
		object.stale = true
	}
}

// mayCause reports whether a pending write may have made the change.
func (p *pendingWrites) mayCause(change Change) bool {
	return slices.ContainsFunc(p.writes, func(pending *PendingWrite) bool { return isScope(pending.write, change) })
}

// isScope reports whether the changed object is among those that the write may reach.
func isScope(w access.Write, change Change) bool {
	return w.Resource.GroupResource() == change.Resource &&
		(w.Name == "" || w.Name == change.Name) &&
		(w.Namespace == change.Namespace || w.Namespace == "" && w.Name == "")
}

// note adds an object of a response. The caller must hold the lock.
func (l *Ledger) note(pending *PendingWrite, written WrittenObject) {
	if written.UID == "" {
		l.noteUnidentified(pending.cr, pending.write)
		return
	}
	key := objectKey{pending.cr, written.UID}
	if l.objects == nil {
		l.objects = map[objectKey]*objectWrites{}
	}
	object := l.objects[key]
	if object == nil {
		object = &objectWrites{resource: pending.write.Resource.GroupResource()}
		l.objects[key] = object
	}
	object.deleted, object.stale = object.deleted || written.Deleted, false
	if written.ResourceVersion != "" {
		l.settleUnidentified(pending, written.ResourceVersion)
		object.add(write{written.ResourceVersion, written.Digest})
	}
}

// isForeign reports whether the CR's runs did not make the change. It forgets the
// writes that the watch has reached. The caller must hold the lock.
func (l *Ledger) isForeign(cr CR, change Change) bool {
	identified := l.isIdentified(cr, change)
	if identified && !change.Deleting {
		return false
	}
	return !l.explainedByUnidentified(cr, change) && !identified
}

// isIdentified reports whether the change is none, or that of a write whose response had the
// object. The caller must hold the lock.
func (l *Ledger) isIdentified(cr CR, change Change) bool {
	key := objectKey{cr, change.UID}
	object := l.objects[key]
	if object == nil {
		return change.Unchanged || change.Initial
	}
	if change.Deleted {
		delete(l.objects, key)
		return object.deleted
	}
	identified := change.Unchanged || object.explains(change)
	object.writes = slices.DeleteFunc(object.writes, func(w write) bool {
		return w.resourceVersion == change.ResourceVersion || older(w.resourceVersion, change.ResourceVersion)
	})
	if len(object.writes) == 0 && !object.deleted {
		delete(l.objects, key)
	}
	return identified
}

package controller

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/jobevent"
	"github.com/ensign-operator/ensign/internal/slots"
)

// memory is what is remembered of a CR between attempts. All of it may be lost
// in a restart without harm. Its fields belong to the one attempt that is at
// work on the CR; uid and all from cancel on are guarded by memories.
type memory struct {
	uid types.UID
	// met is true once this manager has come to a verdict on the CR, or has let it
	// rest as its predecessor left it.
	met bool
	// failures in a row at the generation.
	failures   int
	generation int64
	// announced is the outcome of which Events have told.
	announced jobevent.Outcome
	// pending is the verdict that could not be written yet.
	pending *verdict

	cancel context.CancelCauseFunc
	// read is the resource version of the CR as an attempt has taken it up last, ""
	// before the first; shown is the one that an event told of last.
	read, shown string
	// changed is true once an event has told of a change: what an earlier manager
	// knew is no reason to rest then.
	changed bool
	// gone is the UID that was lost, deleting the one whose deletion was seen.
	gone, deleting types.UID
	// seen is the name as events showed it last, and wake ends a wait for a slot
	// that an event has made wrong.
	seen sight
	wake context.CancelFunc
}

// sight is what an event shows of a CR before it is read.
type sight struct {
	// idle is true where nothing can run: the object is gone, or is being deleted
	// without our finalizer.
	idle  bool
	class slots.Class
}

// occasion is what an event tells of.
type occasion bool

const (
	aCreation occasion = false
	aChange   occasion = true
)

// memories holds the memory of each CR of a watch, by name: the queue never
// works twice at once on one name, whatever its UID.
type memories struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*memory
}

// of gives the memory of the CR with the uid, a fresh one where its name was
// another object's before; predecessor is that object's UID, or "".
func (m *memories) of(name types.NamespacedName, uid types.UID) (found *memory, predecessor types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found = m.entry(name)
	if found.uid == uid {
		return found, ""
	}
	predecessor, found = found.uid, &memory{
		uid: uid, gone: found.gone, deleting: found.deleting, seen: found.seen, shown: found.shown, changed: found.changed,
	}
	m.byName[name] = found
	return found, predecessor
}

// drop forgets the name and gives the UIDs it stood for.
func (m *memories) drop(name types.NamespacedName) []types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	var uids []types.UID
	if found := m.byName[name]; found != nil {
		for _, uid := range []types.UID{found.uid, found.gone} {
			if uid != "" {
				uids = append(uids, uid)
			}
		}
	}
	delete(m.byName, name)
	return uids
}

// running registers how to cancel the run of a CR. It is false when the CR has
// gone in the meantime.
func (m *memories) running(name types.NamespacedName, cancel context.CancelCauseFunc) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.entry(name)
	found.cancel = cancel
	if found.deleting == found.uid {
		cancel(errDeleted)
	}
	return found.gone != found.uid
}

func (m *memories) ended(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entry(name).cancel = nil
}

// deleted cancels the run of a CR that is being deleted, if there is one.
func (m *memories) deleted(cr *unstructured.Unstructured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.entry(client.ObjectKeyFromObject(cr))
	found.deleting = cr.GetUID()
	if found.uid == cr.GetUID() && found.cancel != nil {
		found.cancel(errDeleted)
	}
}

// lost notes that the object is gone, and cancels its run if there is one. It is
// false where another object of the name has been read since, whose own events
// say what is to be done.
func (m *memories) lost(cr *unstructured.Unstructured) (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.entry(client.ObjectKeyFromObject(cr))
	found.gone = cr.GetUID()
	if found.uid == cr.GetUID() {
		found.read = "" // It tells nothing of a successor.
		if found.cancel != nil {
			found.cancel(errGone)
		}
	}
	return !found.hasRead(cr) && found.shows(cr, sight{idle: true})
}

// saw notes what an event shows of a CR, as it was created or has changed. It is
// false where that is no news: an attempt has read the CR since, or is going to.
func (m *memories) saw(cr *unstructured.Unstructured, seen sight, how occasion) (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.entry(client.ObjectKeyFromObject(cr))
	if found.gone == cr.GetUID() {
		found.gone = "" // Whoever told of its end was wrong.
	}
	switch known := found.uid == cr.GetUID(); {
	case known && found.hasRead(cr):
		found.seen.idle = seen.idle // The end of its predecessor may have come after the read.
		return false
	case how == aChange && found.hasRead(cr):
		return false // A predecessor's. A creation counts, whatever its version says.
	}
	found.changed = found.changed || how == aChange
	return found.shows(cr, seen)
}

// hasRead tells whether an attempt has taken up the CR as the event shows it, or
// later, or a successor of it. An event may come after the attempt that it has not
// caused: from a watch that lags, or where the end of a predecessor of the same
// name was the cause.
func (m *memory) hasRead(cr *unstructured.Unstructured) bool {
	return m.read != "" && notAfter(cr.GetResourceVersion(), m.read)
}

// notAfter compares two resource versions of a kind. Those of some aggregated APIs
// have no order; of them only the same is known to be no later.
func notAfter(version, reference string) bool {
	order, err := resourceversion.CompareResourceVersion(version, reference)
	return version == reference || err == nil && order < 0
}

// shows lets an attempt that waits for a slot look again when the sight changes
// what it waits for. It is false where there is one: it reads the CR after its
// wait, and needs no other attempt to follow it.
func (m *memory) shows(cr *unstructured.Unstructured, seen sight) (news bool) {
	changed := m.seen != seen
	m.seen, m.shown = seen, cr.GetResourceVersion()
	if m.wake == nil {
		return true
	}
	if changed {
		m.wake()
	}
	return false
}

// await registers how to wake an attempt that is going to wait for a slot of the
// class. It is false for an attempt that needs none. A name that is not known is
// gone: every CR is shown by an event before its first attempt.
func (m *memories) await(name types.NamespacedName, wake context.CancelFunc) (slots.Class, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.byName[name]
	if found == nil || found.seen.idle || found.pending != nil {
		return slots.Usual, false
	}
	found.wake = wake
	return found.seen.class, true
}

// admitted ends what await began: from now on an event asks for another attempt.
func (m *memories) admitted(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.byName[name]; found != nil {
		found.wake = nil
	}
}

// takenUp notes that an attempt runs content for the CR as it was read, or lets it
// rest. What repeats after it is no news.
func (m *memories) takenUp(cr *unstructured.Unstructured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.entry(client.ObjectKeyFromObject(cr))
	found.read = cr.GetResourceVersion()
	if found.seen.class == slots.Changed && !found.asked() {
		found.seen.class = slots.Usual
	}
}

// found notes that the CR is there, as an attempt has read it, whatever events told
// before. It is false where they may know better.
func (m *memories) found(cr *unstructured.Unstructured) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.entry(client.ObjectKeyFromObject(cr))
	if notAfter(found.shown, cr.GetResourceVersion()) {
		found.seen.idle = false
	}
	return !found.seen.idle
}

// asked tells whether an event still waits for an attempt that may run.
func (m *memories) asked(name types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entry(name).asked()
}

func (m *memory) asked() bool {
	return m.shown != "" && (m.read == "" || !notAfter(m.shown, m.read))
}

// changed tells whether an event has told of a change.
func (m *memories) changed(name types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entry(name).changed
}

// entry is called with the lock held.
func (m *memories) entry(name types.NamespacedName) *memory {
	if m.byName == nil {
		m.byName = map[types.NamespacedName]*memory{}
	}
	found := m.byName[name]
	if found == nil {
		found = &memory{}
		m.byName[name] = found
	}
	return found
}

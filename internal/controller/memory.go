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
	// read is the resource version at which the last attempt that may run read the
	// CR; "" before the first.
	read string
	// gone is the UID that was lost, deleting the one whose deletion was seen.
	gone, deleting types.UID
	// seen is the name as events showed it last, and wake ends a wait for a slot
	// that an event has made wrong.
	seen sight
	wake context.CancelFunc
	// asked is true from an event until an attempt begins that may run.
	asked bool
}

// sight is what an event shows of a CR before it is read.
type sight struct {
	// idle is true where nothing can run: the object is gone, or is being deleted
	// without our finalizer.
	idle  bool
	class slots.Class
}

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
	predecessor, found = found.uid, &memory{uid: uid, gone: found.gone, deleting: found.deleting, seen: found.seen, asked: found.asked}
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
	if found.uid == cr.GetUID() && found.cancel != nil {
		found.cancel(errGone)
	}
	if found.uid != "" && found.uid != cr.GetUID() {
		return false
	}
	return found.shows(sight{idle: true})
}

// saw notes what an event shows of a CR. It is false where that is no news: an
// attempt has read the CR since, or is going to.
func (m *memories) saw(cr *unstructured.Unstructured, seen sight) (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.entry(client.ObjectKeyFromObject(cr))
	if found.hasRead(cr) {
		found.seen.idle = seen.idle // The events of a predecessor may have come after the read.
		return false
	}
	return found.shows(seen)
}

// hasRead tells whether an attempt that may run has read the CR as the event
// shows it, or later. An event may come after the read that it has not caused:
// from a watch that lags, or where the end of a predecessor of the same name was
// the cause.
func (m *memory) hasRead(cr *unstructured.Unstructured) bool {
	if m.uid != cr.GetUID() || m.read == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cr.GetResourceVersion(), m.read)
	return err == nil && order <= 0 // Those of some aggregated APIs have no order.
}

// shows lets an attempt that waits for a slot look again when the sight changes
// what it waits for. It is false where there is one: it reads the CR after its
// wait, and needs no other attempt to follow it.
func (m *memory) shows(seen sight) (news bool) {
	changed := m.seen != seen
	m.seen, m.asked = seen, true
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

// admitted ends what await began.
func (m *memories) admitted(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byName[name].wake = nil // Only an attempt drops the name, and there is one at a time.
}

// begun notes that an attempt begins that may run, on the CR as it was read. What
// repeats after it is no news.
func (m *memories) begun(cr *unstructured.Unstructured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.entry(client.ObjectKeyFromObject(cr))
	found.read, found.asked = cr.GetResourceVersion(), false
	if found.seen.class == slots.Changed {
		found.seen.class = slots.Usual
	}
}

// asked tells whether an event still waits for an attempt that may run.
func (m *memories) asked(name types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entry(name).asked
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

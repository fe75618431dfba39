package controller

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

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
func (m *memories) deleted(name types.NamespacedName, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.entry(name)
	found.deleting = uid
	if found.uid == uid && found.cancel != nil {
		found.cancel(errDeleted)
	}
}

// lost notes that the object with the uid is gone, and cancels its run if there
// is one.
func (m *memories) lost(name types.NamespacedName, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.entry(name)
	found.gone = uid
	if found.uid == uid && found.cancel != nil {
		found.cancel(errGone)
	}
}

// saw notes what an event shows, and lets an attempt that waits for a slot look
// again when that changes what it waits for.
func (m *memories) saw(name types.NamespacedName, seen sight) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.entry(name)
	changed := found.seen != seen
	found.seen, found.asked = seen, true
	if changed && found.wake != nil {
		found.wake()
	}
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

// begun notes that an attempt begins that may run. What repeats after it is no
// news.
func (m *memories) begun(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.entry(name)
	found.asked = false
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

package controller

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/jobevent"
)

// memory is what is remembered of a CR between attempts. All of it may be lost
// in a restart without harm. Its fields belong to the one attempt that is at
// work on the CR; uid and all from cancel on are guarded by memories.
type memory struct {
	uid types.UID
	// met is true once this manager has come to a verdict on the CR, or has let it
	// rest as its predecessor left it.
	met bool
	// failures in a row at the edition.
	failures int
	edition  edition
	// announced is the outcome of which Events have told.
	announced jobevent.Outcome
	// annotations are those that trigger, as a digest, and due is what brings the CR back
	// by itself, both since the last run.
	annotations string
	due         due
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
	// known is the UID of the object that events have shown last.
	known types.UID
	// nudged is what has changed of the CR's related objects, from the first news until
	// an attempt begins that runs content.
	nudged string
	// going is true of an attempt from the end of its wait until it
	// has taken up the CR, and late once there was news meanwhile that it may not see.
	going, late bool
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
	predecessor, found = found.uid, &memory{
		uid: uid, gone: found.gone, deleting: found.deleting, seen: found.seen, shown: found.shown, changed: found.changed,
		known: found.known, nudged: found.nudged, going: found.going, late: found.late,
	}
	m.byName[name] = found
	return found, predecessor
}

// drop forgets the name and gives the UIDs it stood for.
func (m *memories) drop(name types.NamespacedName) []types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	var uids []types.UID
	dropped := m.byName[name]
	if dropped != nil {
		for _, uid := range []types.UID{dropped.uid, dropped.gone} {
			if uid != "" {
				uids = append(uids, uid)
			}
		}
	}
	delete(m.byName, name)
	if dropped != nil && dropped.late {
		// The name was shown again while it was looked for.
		m.byName[name] = &memory{
			seen: dropped.seen, shown: dropped.shown, changed: dropped.changed, known: dropped.known, nudged: dropped.nudged, late: true,
		}
	}
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

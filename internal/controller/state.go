package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// state is the manager's memory of the CR with one name between two attempts. The queue gives a
// name to one attempt at a time, and only that attempt uses the state: it needs no lock. A restart
// loses the state. Content then runs once more, unless the CR's status proves that the same version
// already succeeded with the same content.
type state struct {
	// version is the version that content ran for last, or runs for now. The other fields
	// belong to the object with its UID.
	version version
	// last is the conclusion of that run. It is nil during the run, and after a run without
	// one: this manager ceased to lead, the CR was deleted, or there was a panic.
	last *conclusion
	// unwritten is true until last has been written to the CR's status.
	unwritten bool
	// answered are the requests that a run has answered last.
	answered string
	// failures counts the consecutive failed runs of this version's spec.
	failures int
	// repeats counts those of them that failed the same way, up to the last one.
	repeats int
	// healthWritten is when the health of children was written last.
	healthWritten time.Time
	// fields are those of children that were written last.
	fields map[string]any
	// due is when content runs again although nothing changed; the zero time is never.
	due time.Time
	// throttle bounds the runs that nobody asked for.
	throttle throttle
	// locked is true while the run waits for that of another shard.
	locked bool
	// released is true once the manager has removed its finalizer.
	released bool
}

// isNew reports whether no run of the object has begun and nothing is known of an earlier one.
func (st *state) isNew() bool { return st.last == nil && st.version == version{uid: st.version.uid} }

// entry is all that is kept of a name: the state for its attempts, and the mailbox for its
// events and attempts.
type entry struct {
	state   state
	mailbox mailbox
	// phase is the one in which states counts the CR, and guarded by its lock.
	phase Phase
}

// begin forgets a predecessor of the same name. The reason for which the name is dirty stays: it
// may be about the new object, and one more run does no harm.
func (e *entry) begin(uid types.UID) {
	e.state = state{version: version{uid: uid}}
	e.mailbox.reset()
}

// states holds the entry of each CR of a watch, by name.
type states struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*entry
	// phases has the number of entries in each phase; nil before the first.
	phases map[Phase]int
}

// of returns the entry of the name, a new one if there is none: a CR that waits.
func (s *states) of(name types.NamespacedName) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName == nil {
		s.byName = map[types.NamespacedName]*entry{}
	}
	found := s.byName[name]
	if found == nil {
		found = &entry{}
		s.byName[name] = found
		s.count(found, PhaseWaiting)
	}
	return found
}

// forget drops the entry of the name.
func (s *states) forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.byName[name]; found != nil {
		s.count(found, uncounted)
		delete(s.byName, name)
	}
}

// mailboxOf returns the mailbox of the name; nil if nothing is kept of it.
func (s *states) mailboxOf(name types.NamespacedName) *mailbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.byName[name]; found != nil {
		return &found.mailbox
	}
	return nil
}

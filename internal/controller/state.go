package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// state is what the manager remembers of the CR with one name between two attempts.
// A restart loses all of it. Content then runs once more, unless the CR's status proves
// that the same version already succeeded with the same content.
type state struct {
	// version is the version that content ran for last, or runs for now. The fields last,
	// unwritten, failures and due belong to the object with its UID.
	version version
	// last is the conclusion of that run. It is nil while the run is live, and after it if it
	// came to none: this manager ceased to lead, the CR went, or there was a panic.
	last *conclusion
	// unwritten is true until last has been written to the CR's status.
	unwritten bool
	// failures counts the consecutive failed runs of this version's spec.
	failures int
	// due is when content runs again although nothing changed; the zero time is never.
	due time.Time
	// dirty is the reason, as the log shows it, why content must run although it ran for
	// this version already; "" is none. Events set it, and the start of a run clears it.
	dirty string
	// brake bounds the runs that nobody asked for.
	brake brake
	// heldFor is the version whose run the brake holds back, as the queue knows: no event has to
	// say so again. The zero version is none.
	heldFor version
	// interrupt passes an event to the attempt that is at work; nil while none waits or runs.
	interrupt func(signal)
}

// isNew reports whether no run of the object has begun and nothing is known of an earlier one.
func (st *state) isNew() bool { return st.last == nil && st.version == version{uid: st.version.uid} }

// signal is what an event means for the attempt that is at work on an object.
type signal struct {
	uid types.UID
	// end is errGone, errDeleted or errAbandoned if a run of the object must end; else nil.
	end error
}

// errEvent ends the wait for a slot: the CR has to be read again.
var errEvent = errors.New("an event of the custom resource came")

// states holds the state of each CR of a watch, by name. The queue gives a name to one
// worker at a time, and that worker alone writes the state. Only dirty is also written
// by events.
type states struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*state
}

// get returns a copy of the state.
func (s *states) get(name types.NamespacedName) state {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.byName[name]; found != nil {
		return *found
	}
	return state{}
}

// update changes the state of the name.
func (s *states) update(name types.NamespacedName, change func(*state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.entry(name))
}

// entry returns the state of the name, a new one if there is none. The caller holds the lock.
func (s *states) entry(name types.NamespacedName) *state {
	if s.byName == nil {
		s.byName = map[types.NamespacedName]*state{}
	}
	found := s.byName[name]
	if found == nil {
		found = &state{}
		s.byName[name] = found
	}
	return found
}

// setObject begins a new state if the object with the UID is not the one that the state is
// about. It returns the UID of that predecessor of the same name, "" if there was none. The
// name stays dirty: the reason may be about the new object, and one run more does no harm.
func (s *states) setObject(name types.NamespacedName, uid types.UID) (predecessor types.UID) {
	s.update(name, func(st *state) {
		if st.version.uid != uid {
			predecessor = st.version.uid
			*st = state{version: version{uid: uid}, dirty: st.dirty, interrupt: st.interrupt}
		}
	})
	return predecessor
}

// forget drops the state of the name. It returns the UID of its object, and whether its runs
// were slowed down.
func (s *states) forget(name types.NamespacedName) (uid types.UID, slowed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.byName[name]
	if found == nil {
		return "", false
	}
	delete(s.byName, name)
	return found.version.uid, found.brake.slowedBy != ""
}

// needsRun reports whether the state is dirty, or another version than that of an event ran
// last, and the queue may not know of it.
func (s *states) needsRun(name types.NamespacedName, v version) bool {
	st := s.get(name)
	return (st.version != v || st.dirty != "") && st.heldFor != v
}

// markDirty records why the content of the CR must run again. If there was no reason
// before, it returns true, and the caller must put the name into the queue. It then interrupts
// a wait for a slot, because the CR may get one sooner now. If there was one, the CR is in the
// queue already, or is put there by the event that ends its pause or selects it again.
func (s *states) markDirty(name types.NamespacedName, why string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.entry(name)
	if found.dirty != "" {
		return false
	}
	found.dirty = why
	found.notify(signal{})
	return true
}

// slowed returns how many CRs have an empty bucket although they do not fail.
func (s *states) slowed() (number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.byName {
		if st.brake.slowedBy != "" {
			number++
		}
	}
	return number
}

// notify passes a signal to the attempt at work on the name, if there is one. The caller
// also puts the name into the queue.
func (s *states) notify(name types.NamespacedName, sig signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.byName[name]; found != nil {
		found.notify(sig)
	}
}

func (st *state) notify(sig signal) {
	if st.interrupt != nil {
		st.interrupt(sig)
	}
}

// interruptible returns a context that ends with ctx or with the next event of the name.
func (s *states) interruptible(ctx context.Context, name types.NamespacedName) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.update(name, func(st *state) {
		st.interrupt = func(signal) { cancel(errEvent) }
	})
	return ctx, cancel
}

// beginRun makes cancel end the run when an event says that the object must not run any
// more; other events do not disturb a run. It returns false if an event came since the CR
// was read: then nothing may run, and the event's own request reads the CR again.
func (s *states) beginRun(readCtx context.Context, name types.NamespacedName, uid types.UID, cancel context.CancelCauseFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if context.Cause(readCtx) == errEvent { //nolint:errorlint // A cause is compared by identity: interruptible sets it.
		return false
	}
	s.entry(name).interrupt = func(sig signal) {
		if sig.end != nil && sig.uid == uid {
			cancel(sig.end)
		}
	}
	return true
}

// endAttempt records that no attempt is at work on the name any more.
func (s *states) endAttempt(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.byName[name]; found != nil {
		found.interrupt = nil
	}
}

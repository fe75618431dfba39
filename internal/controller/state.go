package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// state is what the manager remembers between attempts of the CR that has one name. A
// restart may lose all of it: content then runs once more, unless the CR's status proves
// that it need not.
type state struct {
	// version is what content ran for last, or runs for now. Its UID is the object that last,
	// unwritten, failures and due speak of.
	version version
	// last is what came of that run; nil while it is at work, and where it came to nothing.
	last *verdict
	// unwritten is true while the CR's status does not have last.
	unwritten bool
	// failures counts the failed runs in a row of the spec that the version has.
	failures int
	// due is when content runs again although nothing changed; zero is never.
	due time.Time
	// dirty says, in the words of the log, why content must run although the CR's version
	// has run; "" is no reason. Events set it, and the start of a run clears it.
	dirty string
	// interrupt tells the attempt at work what an event says; nil while nothing listens.
	interrupt func(news)
}

// news is what an event says of an object.
type news struct {
	uid types.UID
	// end is errGone or errDeleted where no run of the object may go on; else nil.
	end error
}

// errNews ends the wait for a slot: an event came, and the CR is read again.
var errNews = errors.New("an event of the custom resource came")

// states holds the state of each CR of a watch, by name: the queue never hands out one
// name to two workers. The attempt at work on the name writes all of its state but
// dirty, which events write, too.
type states struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*state
}

// get returns a copy.
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

// entry is called with the lock held.
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

// adopt makes the state that of the object with the UID. The UID of a predecessor of the
// same name is returned, "" if there was none.
func (s *states) adopt(name types.NamespacedName, uid types.UID) (predecessor types.UID) {
	s.update(name, func(st *state) {
		if st.version.uid != uid {
			predecessor = st.version.uid
			*st = state{version: version{uid: uid}, dirty: st.dirty, interrupt: st.interrupt}
		}
	})
	return predecessor
}

// forget drops the state of the name and returns the UID that it was about.
func (s *states) forget(name types.NamespacedName) types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.byName[name]
	if found == nil {
		return ""
	}
	delete(s.byName, name)
	return found.version.uid
}

// misses reports whether content must run for the version of the CR that an event shows,
// as far as the state tells.
func (s *states) misses(name types.NamespacedName, v version) bool {
	st := s.get(name)
	return st.version != v || st.dirty != ""
}

// markDirty notes why the content of the CR must run again. The first reason counts, and
// interrupts a wait for a slot, which the CR may get sooner now.
func (s *states) markDirty(name types.NamespacedName, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.entry(name)
	if found.dirty != "" {
		return
	}
	found.dirty = why
	found.hear(news{})
}

// tell hands what an event says to the attempt at work on the name, if there is one. The
// caller puts the name into the queue as well.
func (s *states) tell(name types.NamespacedName, n news) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.byName[name]; found != nil {
		found.hear(n)
	}
}

func (st *state) hear(n news) {
	if st.interrupt != nil {
		st.interrupt(n)
	}
}

// listen returns a context that ends with ctx, and with the next event of the name.
func (s *states) listen(ctx context.Context, name types.NamespacedName) (heard context.Context, cancel context.CancelCauseFunc) {
	heard, cancel = context.WithCancelCause(ctx)
	s.update(name, func(st *state) {
		st.interrupt = func(news) { cancel(errNews) }
	})
	return heard, cancel
}

// running lets an event that says that the object goes, and no other, end a run from here
// on. It returns false where an event came since heard was made: then the CR has to be
// read again, and the event's own request sees to that.
func (s *states) running(heard context.Context, name types.NamespacedName, uid types.UID, cancel context.CancelCauseFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if context.Cause(heard) == errNews { //nolint:errorlint // A cause is compared by identity: listen sets it.
		return false
	}
	s.entry(name).interrupt = func(n news) {
		if n.end != nil && n.uid == uid {
			cancel(n.end)
		}
	}
	return true
}

// over says that no attempt is at work on the name any more.
func (s *states) over(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.byName[name]; found != nil {
		found.interrupt = nil
	}
}

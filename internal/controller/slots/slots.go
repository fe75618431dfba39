package slots

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Class is how pressing a piece of work is; the higher goes first.
type Class int

// The classes of work, from the least pressing.
const (
	// Usual is what repeats: periods, retries, CRs after a restart.
	Usual Class = iota
	// Changed is a CR with a generation that was not reported yet.
	Changed
	// Urgent is a CR that is being deleted.
	Urgent
)

// Slots are the admissions of one manager. It must be made by New.
type Slots struct {
	// Waited is told how long a piece of the group waited for its slot; nil is
	// allowed. It is set before the first Acquire and must not block.
	Waited func(group string, wait time.Duration)

	limit  int
	now    func() time.Time
	mu     sync.Mutex
	free   int
	groups map[string]*group
	served uint64 // counts admissions
}

// group is what is known of a group. It stays for good: groups are few.
type group struct {
	live    int
	served  uint64 // the number of its last admission
	waiting []*waiter
}

type waiter struct {
	class    Class
	admitted chan struct{}
}

// New makes limit slots, at least one, for the groups. A group that is named here
// has its part in the reserve before its first piece.
func New(limit int, groups ...string) *Slots {
	s := &Slots{limit: max(limit, 1), now: time.Now, groups: map[string]*group{}}
	s.free = s.limit
	for _, name := range groups {
		s.groups[name] = &group{}
	}
	return s
}

// Limit is the number of slots.
func (s *Slots) Limit() int { return s.limit }

// Acquire waits for a slot and takes it; release gives it back and may be called
// more than once. It is an error when ctx ends first; then the place in the queue
// is given up.
func (s *Slots) Acquire(ctx context.Context, groupName string, class Class) (release func(), err error) {
	if ctx.Err() != nil {
		return nil, notAdmitted(ctx)
	}
	began := s.now()
	w := s.enqueue(groupName, class)
	select {
	case <-w.admitted:
	case <-ctx.Done():
		if s.leave(groupName, w) {
			return nil, notAdmitted(ctx)
		}
		// Admitted in the same moment: the caller finds out by its context.
	}
	if s.Waited != nil {
		s.Waited(groupName, s.now().Sub(began))
	}
	return sync.OnceFunc(func() { s.release(groupName) }), nil
}

func notAdmitted(ctx context.Context) error {
	return fmt.Errorf("wait for a slot: %w", context.Cause(ctx))
}

// Live is how many slots the group has, and Waiting how many pieces of it wait.
func (s *Slots) Live(groupName string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.group(groupName).live
}

// Waiting is how many pieces of the group wait for a slot.
func (s *Slots) Waiting(groupName string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.group(groupName).waiting)
}

func (s *Slots) enqueue(groupName string, class Class) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &waiter{class: class, admitted: make(chan struct{})}
	g := s.group(groupName)
	g.waiting = append(g.waiting, w)
	s.admit()
	return w
}

// leave gives the place of w up. It is false when w has been admitted.
func (s *Slots) leave(groupName string, w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.group(groupName)
	at := slices.Index(g.waiting, w)
	if at < 0 {
		return false
	}
	g.waiting = slices.Delete(g.waiting, at, at+1)
	return true
}

func (s *Slots) release(groupName string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.group(groupName).live--
	s.free++
	s.admit()
}

// group is called with the lock held.
func (s *Slots) group(name string) *group {
	g := s.groups[name]
	if g == nil {
		g = &group{}
		s.groups[name] = g
	}
	return g
}

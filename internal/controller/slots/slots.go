package slots

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Priority orders the runs that wait for a slot: the highest goes first.
type Priority int

const (
	// Normal is for repeated runs: after a period, a failure or a restart.
	Normal Priority = iota
	// Changed is for a CR whose generation has not been reported yet, or that is dirty.
	Changed
	// Urgent is for a CR that is being deleted.
	Urgent
)

// Slots are the slots of one manager. New makes them.
type Slots struct {
	// ObserveWait is called with the time that a run of the group waited for its slot. It
	// may be nil, must be set before the first Acquire, and must not block.
	ObserveWait func(group string, wait time.Duration)

	limit      int
	now        func() time.Time
	mu         sync.Mutex
	free       int
	groups     map[string]*group
	admissions uint64 // number of admissions so far
}

// group is the state of a group. It is never removed: groups are few.
type group struct {
	live          int
	lastAdmission uint64 // value of Slots.admissions when a run of the group was last admitted
	waiting       []*waiter
}

type waiter struct {
	priority Priority
	admitted chan struct{}
}

// New returns limit slots, at least one. The groups that are named here have reserved
// slots before they first call Acquire; others only from then on.
func New(limit int, groups ...string) *Slots {
	s := &Slots{limit: max(limit, 1), now: time.Now, groups: map[string]*group{}}
	s.free = s.limit
	for _, name := range groups {
		s.groups[name] = &group{}
	}
	return s
}

// Limit returns the number of slots.
func (s *Slots) Limit() int { return s.limit }

// Acquire waits for a slot and takes it. release gives it back and may be called more than
// once. If ctx ends first, Acquire returns the cause as an error and leaves the queue.
func (s *Slots) Acquire(ctx context.Context, groupName string, priority Priority) (release func(), err error) {
	if ctx.Err() != nil {
		return nil, waitError(ctx)
	}
	began := s.now()
	w := s.enqueue(groupName, priority)
	select {
	case <-w.admitted:
	case <-ctx.Done():
		if s.removeWaiter(groupName, w) {
			return nil, waitError(ctx)
		}
		// The slot was given in the same moment. The caller sees that its context has ended.
	}
	if s.ObserveWait != nil {
		s.ObserveWait(groupName, s.now().Sub(began))
	}
	return sync.OnceFunc(func() { s.release(groupName) }), nil
}

func waitError(ctx context.Context) error {
	return fmt.Errorf("wait for a slot: %w", context.Cause(ctx))
}

// Live returns how many slots the group has taken.
func (s *Slots) Live(groupName string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.group(groupName).live
}

// Waiting returns how many runs of the group wait for a slot.
func (s *Slots) Waiting(groupName string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.group(groupName).waiting)
}

func (s *Slots) enqueue(groupName string, priority Priority) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &waiter{priority: priority, admitted: make(chan struct{})}
	g := s.group(groupName)
	g.waiting = append(g.waiting, w)
	s.admitWaiting()
	return w
}

// removeWaiter removes w from the queue. It returns false if w has been admitted.
func (s *Slots) removeWaiter(groupName string, w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.group(groupName)
	i := slices.Index(g.waiting, w)
	if i < 0 {
		return false
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	return true
}

func (s *Slots) release(groupName string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.group(groupName).live--
	s.free++
	s.admitWaiting()
}

// group returns the state of the group, a new one if there is none. The caller holds the
// lock.
func (s *Slots) group(name string) *group {
	g := s.groups[name]
	if g == nil {
		g = &group{}
		s.groups[name] = g
	}
	return g
}

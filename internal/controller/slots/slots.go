package slots

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
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
	// Live is for a run that an earlier manager has left and that goes on: it takes a slot at once,
	// also one more than there are.
	Live
)

// Slots are the slots of one manager. New makes them.
type Slots struct {
	// ObserveWait is called with the time that a run of the group waited for its slot. It
	// may be nil, must be set before the first Acquire, and must not block.
	ObserveWait func(group schema.GroupVersionKind, wait time.Duration)

	limit      int
	now        func() time.Time
	mu         sync.Mutex
	free       int
	groups     map[schema.GroupVersionKind]*group
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
func New(limit int, watches ...schema.GroupVersionKind) *Slots {
	s := &Slots{limit: max(limit, 1), now: time.Now, groups: map[schema.GroupVersionKind]*group{}}
	s.free = s.limit
	for _, watch := range watches {
		s.groups[watch] = &group{}
	}
	return s
}

// Limit returns the number of slots.
func (s *Slots) Limit() int { return s.limit }

// Acquire waits for a slot and takes it. release gives it back and may be called more than
// once. waited is false if a slot was free at once. If ctx ends first, Acquire returns the
// cause as an error and leaves the queue.
func (s *Slots) Acquire(ctx context.Context, watch schema.GroupVersionKind, priority Priority) (release func(), waited bool, err error) {
	if ctx.Err() != nil {
		return nil, false, waitError(ctx)
	}
	began := s.now()
	w := s.enqueue(watch, priority)
	select {
	case <-w.admitted:
	default:
		waited = true
	}
	select {
	case <-w.admitted:
	case <-ctx.Done():
		if s.removeWaiter(watch, w) {
			return nil, false, waitError(ctx)
		}
		// The slot was given in the same moment. The caller sees that its context has ended.
	}
	if s.ObserveWait != nil {
		s.ObserveWait(watch, s.now().Sub(began))
	}
	return sync.OnceFunc(func() { s.release(watch) }), waited, nil
}

func waitError(ctx context.Context) error {
	return fmt.Errorf("wait for a slot: %w", context.Cause(ctx))
}

// Live returns how many slots the group has taken.
func (s *Slots) Live(watch schema.GroupVersionKind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.group(watch).live
}

// Waiting returns how many runs of the group wait for a slot.
func (s *Slots) Waiting(watch schema.GroupVersionKind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.group(watch).waiting)
}

func (s *Slots) enqueue(watch schema.GroupVersionKind, priority Priority) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &waiter{priority: priority, admitted: make(chan struct{})}
	g := s.group(watch)
	g.waiting = append(g.waiting, w)
	s.admitWaiting()
	return w
}

// removeWaiter removes w from the queue. It returns false if w has been admitted.
func (s *Slots) removeWaiter(watch schema.GroupVersionKind, w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.group(watch)
	i := slices.Index(g.waiting, w)
	if i < 0 {
		return false
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	return true
}

func (s *Slots) release(watch schema.GroupVersionKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.group(watch).live--
	s.free++
	s.admitWaiting()
}

// group returns the state of the group, a new one if there is none. The caller holds the
// lock.
func (s *Slots) group(watch schema.GroupVersionKind) *group {
	g := s.groups[watch]
	if g == nil {
		g = &group{}
		s.groups[watch] = g
	}
	return g
}

package slots

import (
	"cmp"
	"slices"
)

// admitWaiting gives free slots to waiting runs, in the order that the package describes.
// The caller holds the lock.
func (s *Slots) admitWaiting() {
	for {
		g := s.nextGroup()
		if g == nil {
			return
		}
		i := g.firstWaiter()
		w := g.waiting[i]
		g.waiting = slices.Delete(g.waiting, i, i+1)
		g.live++
		s.free--
		s.admissions++
		g.lastAdmission = s.admissions
		close(w.admitted)
	}
}

// nextGroup returns the group whose first waiter is admitted next, nil if none may be.
func (s *Slots) nextGroup() *group {
	var best *group
	for _, g := range s.groups {
		if len(g.waiting) == 0 || !s.mayAdmit(g) {
			continue
		}
		if best == nil || precedes(g, best) {
			best = g
		}
	}
	return best
}

// mayAdmit reports whether the group may take one more slot. A group with a current run must
// leave the reserved slots free.
func (s *Slots) mayAdmit(g *group) bool {
	if g.waiting[g.firstWaiter()].priority == Live {
		return true
	}
	if g.live == 0 {
		return s.free > 0
	}
	idle := 0
	for _, other := range s.groups {
		if other.live == 0 {
			idle++
		}
	}
	return s.free > min(idle, s.limit/2)
}

// precedes reports whether a is admitted before b. Both have waiters.
func precedes(a, b *group) bool {
	return cmp.Or(
		-cmp.Compare(a.waiting[a.firstWaiter()].priority, b.waiting[b.firstWaiter()].priority),
		cmp.Compare(a.live, b.live),
		cmp.Compare(a.lastAdmission, b.lastAdmission),
	) < 0
}

// firstWaiter returns the index of the waiter with the highest priority that came first.
func (g *group) firstWaiter() int {
	first := 0
	for i, w := range g.waiting {
		if w.priority > g.waiting[first].priority {
			first = i
		}
	}
	return first
}

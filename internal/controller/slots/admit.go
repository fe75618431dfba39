package slots

import (
	"cmp"
	"slices"
)

// admit gives free slots to who may have them, in the package's order. It is
// called with the lock held.
func (s *Slots) admit() {
	for {
		g := s.next()
		if g == nil {
			return
		}
		at := g.first()
		w := g.waiting[at]
		g.waiting = slices.Delete(g.waiting, at, at+1)
		g.live++
		s.free--
		s.served++
		g.served = s.served
		close(w.admitted)
	}
}

// next is the group whose first waiter is admitted next, nil if none may be.
func (s *Slots) next() *group {
	var best *group
	for _, g := range s.groups {
		if len(g.waiting) == 0 || !s.mayTake(g) {
			continue
		}
		if best == nil || before(g, best) {
			best = g
		}
	}
	return best
}

// mayTake holds the reserve back.
func (s *Slots) mayTake(g *group) bool {
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

// before reports whether a goes before b; both have waiters.
func before(a, b *group) bool {
	return cmp.Or(
		-cmp.Compare(a.waiting[a.first()].class, b.waiting[b.first()].class),
		cmp.Compare(a.live, b.live),
		cmp.Compare(a.served, b.served),
	) < 0
}

// first is the index of the longest waiting among the most pressing.
func (g *group) first() int {
	first := 0
	for i, w := range g.waiting {
		if w.class > g.waiting[first].class {
			first = i
		}
	}
	return first
}

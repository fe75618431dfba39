package main

import (
	"sync"
	"time"
)

// counts is what happened in some time.
type counts struct {
	Requests int `json:"requests"`
	Errors   int `json:"errors"`
	// Seconds is how long all requests took together.
	Seconds float64 `json:"seconds"`
	// Saturation is the greatest share of the connections to the database that were at work at once.
	Saturation float64 `json:"saturation"`
}

// signals counts requests, in all and since they were last taken.
type signals struct {
	mutex    sync.Mutex
	all, now counts
}

func (s *signals) answered(took time.Duration, failed bool, busy int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, c := range []*counts{&s.all, &s.now} {
		c.Requests++
		if failed {
			c.Errors++
		}
		c.Seconds += took.Seconds()
		// The request itself has given its connection back.
		c.Saturation = max(c.Saturation, float64(min(busy+1, mostConnections))/mostConnections)
	}
}

func (s *signals) total() counts {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.all
}

// take returns what was counted since it was last called.
func (s *signals) take() counts {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	taken := s.now
	s.now = counts{}
	return taken
}

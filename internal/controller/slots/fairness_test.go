package slots_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ensign-operator/ensign/internal/controller/slots"
)

// Fifty runs of one group, of an hour each, want all slots all the time. Runs of the other
// group come at random times and keep one slot busy two thirds of the time.
func TestLongRunsDoNotDelayAnotherGroup(t *testing.T) {
	const arrivals = 2000
	ownTime := 10 * time.Second
	for _, limit := range []int{2, 3, 4, 8} {
		t.Run(fmt.Sprintf("%d slots", limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := slots.New(limit, kind("long"), kind("short"))
				for range 50 {
					go repeat(t, s, "long", time.Hour)
				}
				synctest.Wait()
				waits := make(chan time.Duration, arrivals)
				random := rand.New(rand.NewPCG(1, uint64(limit)))
				for range arrivals {
					go func() { waits <- occupy(t, s, "short", ownTime) }()
					<-time.After(5*time.Second + time.Duration(random.Int64N(int64(20*time.Second))))
				}
				got := collect(waits, arrivals)
				p99 := got[arrivals*99/100]
				t.Logf("half waited for at most %s, 99 of 100 for %s, the last for %s", got[arrivals/2], p99, got[arrivals-1])
				if p99 > ownTime+5*time.Second {
					t.Errorf("99 of 100 waited for at most %s, want %s", p99, ownTime+5*time.Second)
				}
				if live := s.Live(kind("long")); live != limit-1 {
					t.Errorf("the long runs have %d slots, want %d: what is kept free is one slot", live, limit-1)
				}
			})
		})
	}
}

// repeat takes a slot again and again, until the test ends.
func repeat(t *testing.T, s *slots.Slots, group string, length time.Duration) {
	for t.Context().Err() == nil {
		release, _, err := s.Acquire(t.Context(), kind(group), slots.Normal)
		if err != nil {
			return // The test is over.
		}
		select {
		case <-time.After(length):
		case <-t.Context().Done():
		}
		release()
	}
}

// occupy takes a slot once and returns how long it waited.
func occupy(t *testing.T, s *slots.Slots, group string, length time.Duration) time.Duration {
	began := time.Now()
	release, _, err := s.Acquire(t.Context(), kind(group), slots.Normal)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer release()
	waited := time.Since(began)
	<-time.After(length)
	return waited
}

func collect(waits <-chan time.Duration, n int) []time.Duration {
	var got []time.Duration
	for range n {
		got = append(got, <-waits)
	}
	slices.Sort(got)
	return got
}

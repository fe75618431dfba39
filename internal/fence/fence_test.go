package fence

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// clock is the clock of a fence in tests.
type clock struct{ now atomic.Int64 }

func (c *clock) advance(d time.Duration) { c.now.Add(int64(d)) }
func (c *clock) read() Instant           { return Instant(c.now.Load()) }

// newTestFence returns a fence with the default times: it closes 12 s after a renewal was
// sent.
func newTestFence(o Options) (*Fence, *clock) {
	c := &clock{}
	c.advance(time.Hour)
	o.LeaseDuration, o.RetryPeriod, o.Now = 15*time.Second, 2*time.Second, c.read
	return New(o), c
}

func TestHeld(t *testing.T) {
	for why, test := range map[string]struct {
		story func(f *Fence, c *clock)
		want  bool
	}{
		"a candidate that waits holds nothing": {func(*Fence, *clock) {}, false},
		"a renewal opens it":                   {func(f *Fence, c *clock) { f.RecordRenewal(c.read()) }, true},
		"up to lease - retry - 1 s": {func(f *Fence, c *clock) {
			f.RecordRenewal(c.read())
			c.advance(12*time.Second - 1)
		}, true},
		"and not a moment longer": {func(f *Fence, c *clock) {
			f.RecordRenewal(c.read())
			c.advance(12 * time.Second)
		}, false},
		"the time that the renewal took does not count": {func(f *Fence, c *clock) {
			asked := c.read()
			c.advance(5 * time.Second)
			f.RecordRenewal(asked)
			c.advance(7 * time.Second)
		}, false},
		"each renewal counts from its own beginning": {func(f *Fence, c *clock) {
			for range 10 {
				f.RecordRenewal(c.read())
				c.advance(11 * time.Second)
			}
		}, true},
		"a renewal that slept through the whole lease opens nothing": {func(f *Fence, c *clock) {
			asked := c.read()
			c.advance(time.Minute)
			f.RecordRenewal(asked)
		}, false},
		"a renewal after a gap does not open it again, even if nobody asked meanwhile": {func(f *Fence, c *clock) {
			f.RecordRenewal(c.read())
			c.advance(12 * time.Second)
			f.RecordRenewal(c.read())
		}, false},
		"another leader was seen": {func(f *Fence, c *clock) {
			f.RecordRenewal(c.read())
			f.RecordLoss()
		}, false},
		"a renewal after that is of no use": {func(f *Fence, c *clock) {
			f.RecordRenewal(c.read())
			f.RecordLoss()
			f.RecordRenewal(c.read())
		}, false},
		"a candidate that waits sees other leaders and may lead later": {func(f *Fence, c *clock) {
			f.RecordLoss()
			f.RecordRenewal(c.read())
		}, true},
	} {
		t.Run(why, func(t *testing.T) {
			f, c := newTestFence(Options{})
			test.story(f, c)
			if got := f.Held(); got != test.want {
				t.Errorf("want %t, got %t", test.want, got)
			}
		})
	}
}

func TestANilFenceIsAlwaysHeld(t *testing.T) {
	var none *Fence
	none.RecordLoss()
	if none.Close() || !none.Held() {
		t.Error("want a nil fence to be open")
	}
	select {
	case <-none.Lost():
		t.Error("want a nil fence to be never lost")
	default:
	}
}

func TestCloseReportsWhetherTheLeaseIsHeld(t *testing.T) {
	for why, test := range map[string]struct {
		story func(f *Fence, c *clock)
		want  bool
	}{
		"a leader":       {func(f *Fence, c *clock) { f.RecordRenewal(c.read()) }, true},
		"one that waits": {func(*Fence, *clock) {}, false},
		"one that was too late": {func(f *Fence, c *clock) {
			f.RecordRenewal(c.read())
			c.advance(12 * time.Second)
		}, false},
		"one that has lost it": {func(f *Fence, c *clock) {
			f.RecordRenewal(c.read())
			f.RecordLoss()
		}, false},
	} {
		t.Run(why, func(t *testing.T) {
			f, c := newTestFence(Options{})
			test.story(f, c)
			if got := f.Close(); got != test.want || f.Held() || f.Close() {
				t.Errorf("want %t and then a fence that is closed, got %t", test.want, got)
			}
		})
	}
}

func TestOnLostGetsTheDelay(t *testing.T) {
	for why, test := range map[string]struct {
		passed, want time.Duration // since the renewal, and since the fence had to close
	}{
		"another leader was seen early": {time.Second, 0},
		"just in time":                  {12 * time.Second, 0},
		"the process was stopped":       {time.Minute, 48 * time.Second},
	} {
		t.Run(why, func(t *testing.T) {
			got := time.Duration(-1)
			f, c := newTestFence(Options{OnLost: func(late time.Duration) { got = late }})
			f.RecordRenewal(c.read())
			c.advance(test.passed)
			if left := f.Remaining(); left != 15*time.Second-test.passed {
				t.Errorf("want %s left, got %s", 15*time.Second-test.passed, left)
			}
			if f.RecordLoss(); got != test.want {
				t.Errorf("want %s, got %s", test.want, got)
			}
		})
	}
}

func TestWatchReportsTheLossOnceAndInTime(t *testing.T) {
	lost := 0
	f, c := newTestFence(Options{OnLost: func(time.Duration) { lost++ }})
	f.RecordRenewal(c.read())
	go f.Watch(t.Context())
	select {
	case <-f.Lost():
		t.Fatal("told of a loss while the lease is held")
	case <-time.After(3 * watchInterval):
	}
	c.advance(12 * time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), scratch.WaitTimeout)
	defer cancel()
	select {
	case <-f.Lost():
	case <-ctx.Done():
		t.Fatal("the loss was not told")
	}
	f.RecordLoss()
	f.Held()
	if lost != 1 {
		t.Errorf("want one call, got %d", lost)
	}
}

func TestTheClockAdvances(t *testing.T) {
	began := time.Now() // Before the fence's clock is read, so that more time passes by this one.
	before := Now()
	<-time.After(20 * time.Millisecond)
	passed, really := Now().Sub(before), time.Since(began)
	if passed < 20*time.Millisecond || passed > really+time.Millisecond {
		t.Errorf("%s passed by the fence's clock in %s", passed, really)
	}
}

package fence

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// ErrLost says that the lease is not surely held any more.
var ErrLost = errors.New("the lease is not surely held any more")

const (
	// safety is what clocks and schedulers may be off by.
	safety = time.Second
	// look is the pause between two looks of Watch at the clock.
	look = 100 * time.Millisecond
)

// Instant is a time in nanoseconds since the machine started, suspended time
// included: CLOCK_BOOTTIME. All processes of a machine share it.
type Instant int64

// Add returns the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from other to i.
func (i Instant) Sub(other Instant) time.Duration { return time.Duration(i - other) }

// Options are the settings of a Fence. Lease and Retry are required.
type Options struct {
	// Lease is the lease's duration as the other candidates read it from the
	// lease: in whole seconds.
	Lease time.Duration
	// Retry is the pause between two renewals.
	Retry time.Duration
	// OnLost is called once, when the fence has closed and before Lost tells, with how
	// late that is: long after the fence had to close only in a process that was
	// stopped, 0 where it closes early. It must not block.
	OnLost func(late time.Duration)
	// Now is the clock; the machine's when it is nil.
	Now func() Instant
}

// Margin is the time between the closing of the fence and the moment when
// another candidate may lead.
func (o Options) Margin() time.Duration { return o.Retry + safety }

// Fence is open while the lease is surely held. A nil Fence is always open: that
// is what a manager without leader election has.
type Fence struct {
	options Options
	lost    chan struct{}
	conns   conns

	mu    sync.Mutex
	state state
	// closes is when the fence closes: nothing new may begin then. At expires another
	// candidate may lead: nothing may be at work then.
	closes, expires Instant
}

type state int

const (
	waiting state = iota // another candidate leads, or none
	leading
	closed // for good
)

// New makes a fence that opens with the first renewal.
func New(o Options) *Fence {
	if o.Now == nil {
		o.Now = Now
	}
	if o.OnLost == nil {
		o.OnLost = func(time.Duration) {}
	}
	return &Fence{options: o, lost: make(chan struct{}), conns: conns{}}
}

// Held reports whether the lease is surely held now.
func (f *Fence) Held() bool { return f == nil || f.look() == leading }

// Lost is closed when the lease, once held, is not surely held any more. For a
// nil Fence that never happens.
func (f *Fence) Lost() <-chan struct{} {
	if f == nil {
		return nil
	}
	return f.lost
}

// Left is the time until another candidate may lead; negative when it may.
func (f *Fence) Left() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.expires.Sub(f.options.Now())
}

// Renewed records that the API server accepted a renewal which was sent after
// asked. A renewal that follows upon a gap does not open the fence again.
func (f *Fence) Renewed(asked Instant) {
	if f.look() == closed {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == closed || f.overdue() {
		return
	}
	f.state = leading
	f.expires = asked.Add(f.options.Lease)
	f.closes = f.expires.Add(-f.options.Margin())
}

// Lose closes the fence of a leader, because another candidate was seen to lead
// or nobody renews any more. It does nothing to one that waits.
func (f *Fence) Lose() {
	if f != nil {
		f.closeIf(func() bool { return f.state == leading })
	}
}

// Close closes the fence for good and reports whether the lease was surely held
// until now. Only then does the lease belong to this process, which may give it
// back; whatever writes behind the fence cannot do so any more. For a nil Fence
// there is no lease.
func (f *Fence) Close() (held bool) {
	if f == nil {
		return false
	}
	f.closeIf(func() bool {
		held = f.state == leading && !f.overdue()
		return f.state == leading
	})
	return held
}

// Watch sees to it that Lost is closed in time, also when nobody asks. It
// returns when ctx ends.
func (f *Fence) Watch(ctx context.Context) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f.look()
		}
	}
}

// look returns the state as of now.
func (f *Fence) look() state {
	f.closeIf(f.overdue)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// overdue reports whether the fence has to close. It wants the lock.
func (f *Fence) overdue() bool { return f.state == leading && f.options.Now() >= f.closes }

// closeIf closes the fence when the condition, which is asked under the lock, holds.
func (f *Fence) closeIf(condition func() bool) {
	f.mu.Lock()
	if !condition() {
		f.mu.Unlock()
		return
	}
	f.state = closed
	dropped, late := f.conns, max(0, f.options.Now().Sub(f.closes))
	f.conns = nil
	f.mu.Unlock()
	f.options.OnLost(late)
	close(f.lost)
	dropped.drop()
}

// admit takes up a connection unless the fence has closed.
func (f *Fence) admit(c *conn) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == closed {
		return &net.OpError{Op: "dial", Net: "tcp", Err: ErrLost}
	}
	f.conns[c] = true
	return nil
}

func (f *Fence) forget(c *conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, c)
}

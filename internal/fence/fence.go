package fence

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// ErrLost means that the lease is not surely held any more.
var ErrLost = errors.New("this manager may have lost its lease")

const (
	// safetyMargin allows for differences of clocks and for delays of schedulers.
	safetyMargin = time.Second
	// watchInterval is the pause between two checks of Watch.
	watchInterval = 100 * time.Millisecond
)

// Instant is a time by CLOCK_BOOTTIME: nanoseconds since the machine started, including
// the time while it was suspended. All processes of a machine share this clock.
type Instant int64

// Add returns the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from other to i.
func (i Instant) Sub(other Instant) time.Duration { return time.Duration(i - other) }

// Options are the settings of a Fence. LeaseDuration and RetryPeriod are required.
type Options struct {
	// LeaseDuration is the duration that other candidates read from the lease object,
	// which holds whole seconds.
	LeaseDuration time.Duration
	// RetryPeriod is the pause between two renewals.
	RetryPeriod time.Duration
	// OnLost is called once, after the fence has closed and before the channel of Lost is
	// closed. late is the time since the fence had to close: 0 if it closes early, and long
	// only if the process was stopped. OnLost must not block.
	OnLost func(late time.Duration)
	// Now is the clock; nil is the machine's.
	Now func() Instant
}

// Margin returns the time between the closing of the fence and the moment at which another
// candidate may lead.
func (o Options) Margin() time.Duration { return o.RetryPeriod + safetyMargin }

// Fence is open while the lease is surely held. A manager without leader election has a
// nil Fence, which is always open.
type Fence struct {
	options Options
	lost    chan struct{}
	conns   connSet

	mu    sync.Mutex
	state state
	// At closesAt the fence closes: from then on nothing new may begin. At expiresAt another
	// candidate may lead: all work must have ended.
	closesAt, expiresAt Instant
}

type state int

const (
	standby state = iota // another candidate leads, or none does
	leading
	closed // final
)

// New returns a fence that opens with the first renewal.
func New(o Options) *Fence {
	if o.Now == nil {
		o.Now = Now
	}
	if o.OnLost == nil {
		o.OnLost = func(time.Duration) {}
	}
	return &Fence{options: o, lost: make(chan struct{}), conns: connSet{}}
}

// Held reports whether the lease is surely held now.
func (f *Fence) Held() bool { return f == nil || f.currentState() == leading }

// Lost returns a channel that is closed when a leader does not surely hold the lease any
// more. That never happens for a nil Fence.
func (f *Fence) Lost() <-chan struct{} {
	if f == nil {
		return nil
	}
	return f.lost
}

// Remaining returns the time until another candidate may lead. It is negative from then on.
func (f *Fence) Remaining() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.expiresAt.Sub(f.options.Now())
}

// RecordRenewal records that the API server accepted a renewal that was sent after sentAt.
// A renewal that comes after the fence had to close does not open it again.
func (f *Fence) RecordRenewal(sentAt Instant) {
	if f.currentState() == closed {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == closed || f.mustClose() {
		return
	}
	f.state = leading
	f.expiresAt = sentAt.Add(f.options.LeaseDuration)
	f.closesAt = f.expiresAt.Add(-f.options.Margin())
}

// RecordLoss closes the fence of a leader, because another candidate leads or the lease is
// not renewed any more. It has no effect on a standby replica.
func (f *Fence) RecordLoss() {
	if f != nil {
		f.closeIf(func() bool { return f.state == leading })
	}
}

// Close closes the fence and reports whether the lease was surely held until now. If it
// was, the caller may release the lease: nothing that uses connections of Dial can write
// any more. Close returns false for a nil Fence, which has no lease.
func (f *Fence) Close() (held bool) {
	if f == nil {
		return false
	}
	f.closeIf(func() bool {
		held = f.state == leading && !f.mustClose()
		return f.state == leading
	})
	return held
}

// Watch closes the fence in time even if nobody calls Held. It returns when ctx ends.
func (f *Fence) Watch(ctx context.Context) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f.currentState()
		}
	}
}

// currentState closes the fence if it is time to, and returns its state.
func (f *Fence) currentState() state {
	f.closeIf(f.mustClose)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// mustClose reports whether it is time to close the fence. The caller holds the lock.
func (f *Fence) mustClose() bool { return f.state == leading && f.options.Now() >= f.closesAt }

// closeIf closes the fence if condition, which is called with the lock held, returns true.
func (f *Fence) closeIf(condition func() bool) {
	f.mu.Lock()
	if !condition() {
		f.mu.Unlock()
		return
	}
	f.state = closed
	conns, late := f.conns, max(0, f.options.Now().Sub(f.closesAt))
	f.conns = nil
	f.mu.Unlock()
	f.options.OnLost(late)
	close(f.lost)
	conns.resetAll()
}

// register adds a connection to those that are reset when the fence closes. It returns
// ErrLost if the fence has closed.
func (f *Fence) register(c *conn) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == closed {
		return &net.OpError{Op: "dial", Net: "tcp", Err: ErrLost}
	}
	f.conns[c] = true
	return nil
}

func (f *Fence) unregister(c *conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, c)
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ensign-operator/ensign/pkg/content"
)

var (
	// errStopped ends runs when the manager stops.
	errStopped = errors.New("the manager is stopping")
	// errDeleted ends the run of a CR that is being deleted and has no finalizer
	// of ours.
	errDeleted error = unwanted("the custom resource is being deleted")
	// errSuperseded ends the run of a CR that is being deleted, where the finalizer's run need not
	// wait for its end. It does not end that one.
	errSuperseded = fmt.Errorf("the finalizer runs next: %w", errDeleted)
	// errCanceled ends a run because the CR's annotation asks for that.
	errCanceled error = unwanted("it was canceled by the annotation " + cancelSuffix)
	// errAbandoned ends the run of a CR that is to go without its finalizer.
	errAbandoned error = unwanted("the custom resource is abandoned")
)

// unwanted is an error that ends a run although the manager goes on.
type unwanted string

// Error implements error.
func (u unwanted) Error() string { return string(u) }

// Is reports that it is content.ErrUnwanted, whose text would add nothing.
func (unwanted) Is(target error) bool { return target == content.ErrUnwanted }

// Attempts counts the running attempts of a manager. Its Stop is the first phase
// of the manager's stop: no attempt begins any more and all runs are ended, while the API
// stays within reach, so that their results can still be written.
type Attempts struct {
	mu      sync.Mutex
	live    sync.WaitGroup
	stopped context.Context //nolint:containedctx // It is the group's own end, not a caller's.
	stop    context.CancelCauseFunc
}

// NewAttempts makes a group that is open.
func NewAttempts() *Attempts {
	stopped, stop := context.WithCancelCause(context.Background())
	return &Attempts{stopped: stopped, stop: stop}
}

// Enter begins an attempt. runCtx ends with ctx and with Stop; done must be called when the
// attempt is over. ok is false after Stop.
func (g *Attempts) Enter(ctx context.Context) (runCtx context.Context, done func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped.Err() != nil {
		return nil, nil, false
	}
	g.live.Add(1)
	runCtx, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(g.stopped, func() { cancel(context.Cause(g.stopped)) })
	return runCtx, func() {
		unlink()
		cancel(nil)
		g.live.Done()
	}, true
}

// Stop ends all runs and admits no more. It does not wait.
func (g *Attempts) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stop(errStopped)
}

// Stopped reports whether Stop was called.
func (g *Attempts) Stopped() bool { return g.stopped.Err() != nil }

// Wait returns when all attempts are done, or with an error when ctx ends first.
func (g *Attempts) Wait(ctx context.Context) error {
	left := make(chan struct{})
	go func() {
		g.live.Wait()
		close(left)
	}()
	select {
	case <-left:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

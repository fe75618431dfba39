package operator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/fence"
)

// defaultStopTimeout is controller-runtime's.
const defaultStopTimeout = 30 * time.Second

// minStopTimeout is the least time for the end of all runs, even if
// ctrl.Options.GracefulShutdownTimeout is shorter: TERM, KILL after 4 s, and the wait for the end of
// the processes.
const minStopTimeout = 10 * time.Second

// lostLeaseTimeout bounds the wait for the end of all runs when the lease is lost.
const lostLeaseTimeout = 30 * time.Second

// starter is the method of manager.Manager that stopper needs.
type starter interface {
	Start(ctx context.Context) error
}

// stopper runs a manager and ends it.
type stopper struct {
	runs *controller.Attempts
	// fence calls runs.Stop when it closes. It is nil without leader election.
	fence *fence.Fence
	// release releases the lease if this manager holds it.
	release func() error
	grace   time.Duration
	log     logr.Logger
	// stopping becomes true when all runs have ended and the manager begins to stop.
	stopping *atomic.Bool
}

// runUntilStopped runs the manager until ctx ends, and then stops it in two phases.
// controller-runtime would stop the proxy and the caches while runs still need them. So the
// manager has a context of its own, which ends when all runs have ended and their statuses
// are written. Last, the lease is released: the next leader begins when nothing of this one
// is left.
//
// When the lease is lost, runUntilStopped waits until all runs have ended, writes nothing,
// and returns an error. It does so even if the lease could be renewed later, because the
// runs have been ended: a new process starts from a known state. The next leader writes the
// statuses.
func (s stopper) runUntilStopped(ctx context.Context, m starter) error {
	managerCtx, stopManager := context.WithCancel(context.WithoutCancel(ctx))
	defer stopManager()
	managerEnded := make(chan struct{})
	if s.fence != nil {
		go s.fence.Watch(managerCtx)
	}
	go func() {
		defer stopManager()
		select {
		case <-managerEnded:
			return
		case <-s.fence.Lost():
			s.log.Info("the lease is not surely held any more: live runs are ended, nothing is written")
			return
		case <-ctx.Done():
		}
		s.log.Info("stopping: no new runs, live runs are ended, their statuses are written")
		s.runs.Stop()
		if err := s.waitForRuns(max(s.grace, minStopTimeout)); err != nil {
			s.log.Error(err, "not every run was reported within the graceful shutdown timeout")
			return
		}
		s.stopping.Store(true)
	}()
	err := m.Start(managerCtx)
	close(managerEnded)
	if err == nil {
		err = s.lostLeaseError()
	} else {
		s.fence.RecordLoss() // client-go does not renew the lease any more. A standby replica has none to lose.
	}
	s.runs.Stop()
	err = errors.Join(err, s.waitForRuns(lostLeaseTimeout))
	if err == nil {
		if err := s.release(); err != nil {
			s.log.Info("the lease runs out by itself: it could not be released", "error", err.Error())
		}
	}
	return err
}

// lostLeaseError returns an error if the lease was lost.
func (s stopper) lostLeaseError() error {
	select {
	case <-s.fence.Lost():
		return fence.ErrLost
	default:
		return nil
	}
}

func (s stopper) waitForRuns(limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, fmt.Errorf("runs were still live after %s", limit))
	defer cancel()
	return s.runs.Wait(ctx)
}

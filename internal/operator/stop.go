package operator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/fence"
)

// defaultStopTimeout is controller-runtime's.
const defaultStopTimeout = 30 * time.Second

// minStopTimeout is the least time for the end of all runs, even if
// ctrl.Options.GracefulShutdownTimeout is shorter: TERM, KILL after 4 s, and the wait for the end
// of the processes.
const minStopTimeout = 10 * time.Second

// lostLeaseTimeout bounds the wait for the end of all runs when the lease is lost.
const lostLeaseTimeout = 30 * time.Second

// starter is the method of manager.Manager that stopper needs.
type starter interface {
	Start(ctx context.Context) error
}

// stopper runs a controller-runtime manager and ends its runs.
type stopper struct {
	runs *controller.Attempts
	// fence calls runs.Stop when it closes. It is nil without leader election.
	fence *fence.Fence
	// release releases the lease if this manager holds it.
	release func() error
	// grace is the manager's graceful shutdown timeout; less than 0: none.
	grace time.Duration
	log   logr.Logger
	// stopping becomes true when all runs have ended and the manager begins to stop.
	stopping *atomic.Bool
}

// addTo adds the part of the stop that the manager runs. controller-runtime first stops the
// runnables that need no leader election, and waits for them. So the runs end and their statuses
// are written while controllers, caches and the proxy still work; it stops them later.
func (s stopper) addTo(m manager.Manager) error {
	return errors.Join(m.Add(standing{s.drain}), m.Add(standing{s.watchLease}))
}

// standing is a Runnable that a standby replica has too.
type standing struct {
	start func(ctx context.Context) error
}

// Start implements manager.Runnable.
func (r standing) Start(ctx context.Context) error { return r.start(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (standing) NeedLeaderElection() bool { return false }

// drain waits until ctx ends, ends all runs, and returns when their statuses are written. It leaves
// a tenth of the graceful shutdown timeout to the parts that stop next.
func (s stopper) drain(ctx context.Context) error {
	if s.fence != nil {
		guarded, stop := context.WithCancel(context.WithoutCancel(ctx)) // The lease can also be lost during the stop.
		defer stop()
		go s.fence.Watch(guarded)
	}
	<-ctx.Done()
	if s.lost() == nil {
		s.log.Info("stopping: no new runs; the manager ends the current ones and writes their statuses")
	}
	s.runs.Stop()
	if err := s.waitForRuns(s.grace - s.grace/10); err != nil {
		s.log.Error(err, "could not write every run's result within the graceful shutdown timeout")
		return nil
	}
	s.stopping.Store(s.lost() == nil)
	return nil
}

// watchLease returns an error, which ends the manager, when the lease is lost. client-go may go on
// trying to renew it for a while.
func (s stopper) watchLease(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.fence.Lost():
		s.log.Info("this manager may have lost its lease: ending all runs, writing nothing")
		return fence.ErrLost
	}
}

// runUntilStopped runs the manager, to which the stopper is added, until ctx ends. Last, when
// nothing of this manager is left, the lease is released: the next leader begins.
//
// When client-go loses the lease, controller-runtime waits for nothing, not even for drain. So
// runUntilStopped waits for the end of all runs itself, and returns an error. It does so even if
// the lease could be renewed later, because the runs have been ended: a new process starts from a
// known state. The next leader writes the statuses.
func (s stopper) runUntilStopped(ctx context.Context, m starter) error {
	err := m.Start(ctx)
	if err == nil {
		err = s.lost()
	} else {
		s.fence.RecordLoss() // Nobody renews the lease any more. A standby replica has none to lose.
	}
	s.runs.Stop()
	if err = errors.Join(err, s.waitForRuns(lostLeaseTimeout)); err != nil {
		return err
	}
	if err := s.release(); err != nil {
		s.log.Info("could not release the lease; it expires by itself", "error", err.Error())
	}
	return nil
}

// lost returns an error if the lease was lost.
func (s stopper) lost() error {
	select {
	case <-s.fence.Lost():
		return fence.ErrLost
	default:
		return nil
	}
}

// waitForRuns returns when all runs have ended; a limit below 0 means no limit.
func (s stopper) waitForRuns(limit time.Duration) error {
	ctx, cancel := context.WithCancel(context.Background())
	if limit >= 0 {
		ctx, cancel = context.WithTimeoutCause(context.Background(), limit, fmt.Errorf("runs had not ended after %s", limit))
	}
	defer cancel()
	return s.runs.Wait(ctx)
}

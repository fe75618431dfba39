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

// runsEnd is what the end of all runs may take at least, however short the grace
// time of the whole stop is: TERM, KILL after 4 s, and the look that they are gone.
const runsEnd = 10 * time.Second

// lostLeaseWait bounds how long the end of runs is waited for when the lease is
// lost: TERM, KILL, and some time to see the processes gone.
const lostLeaseWait = 30 * time.Second

// starter is a manager.Manager as far as its life is concerned.
type starter interface {
	Start(ctx context.Context) error
}

// stopper brings a manager to its end.
type stopper struct {
	runs *controller.RunGroup
	// fence has runs.Stop called when it closes; nil without leader election.
	fence *fence.Fence
	// release gives the lease back if this manager holds it.
	release func() error
	grace   time.Duration
	log     logr.Logger
	// stopping is set when all runs have ended and the manager is told to stop.
	stopping *atomic.Bool
}

// runUntilStopped runs the manager until ctx ends, and then stops it in two
// phases. controller-runtime would stop proxy and caches under live runs; so the
// manager's own context ends only when the runs have ended and their statuses
// are written. The release of the lease is the last act of such a stop: the next
// leader begins when nothing of this one is left.
//
// It ends by itself when its lease is not surely held any more, also if it could
// be renewed after all: its runs have been ended by then, and a new process is the
// way back that is always taken. Its runs are gone before this returns, and their
// statuses belong to the next leader.
func (s stopper) runUntilStopped(ctx context.Context, m starter) error {
	managerCtx, stopManager := context.WithCancel(context.WithoutCancel(ctx))
	defer stopManager()
	ended := make(chan struct{})
	if s.fence != nil {
		go s.fence.Watch(managerCtx)
	}
	go func() {
		defer stopManager()
		select {
		case <-ended:
			return
		case <-s.fence.Lost():
			s.log.Info("the lease is not surely held any more: live runs are ended, nothing is written")
			return
		case <-ctx.Done():
		}
		s.log.Info("stopping: no new runs, live runs are ended, their statuses are written")
		s.runs.Stop()
		if err := s.waitForRuns(max(s.grace, runsEnd)); err != nil {
			s.log.Error(err, "not every run was reported within --graceful-shutdown-timeout")
			return
		}
		s.stopping.Store(true)
	}()
	err := m.Start(managerCtx)
	close(ended)
	if err == nil {
		err = s.lostLease()
	} else {
		s.fence.RecordLoss() // client-go has given up renewing, or there was nothing to lose.
	}
	s.runs.Stop()
	err = errors.Join(explainBind(err), s.waitForRuns(lostLeaseWait))
	if err == nil {
		if err := s.release(); err != nil {
			s.log.Info("the lease runs out by itself: it could not be released", "error", err.Error())
		}
	}
	return err
}

// lostLease is an error when the lease was lost.
func (s stopper) lostLease() error {
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

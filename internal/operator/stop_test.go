package operator

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/fence"
)

// startFunc is a starter.
type startFunc func(ctx context.Context) error

func (f startFunc) Start(ctx context.Context) error { return f(ctx) }

func TestTheManagerStopsAfterItsRuns(t *testing.T) {
	runs := controller.NewAttempts()
	signal, stop := context.WithCancel(t.Context())
	manager := startFunc(func(managerCtx context.Context) error {
		runCtx, leave, _ := runs.Enter(managerCtx)
		stop()
		<-runCtx.Done() // Phase one: the run is told to end.
		if managerCtx.Err() != nil {
			t.Error("the manager was stopped under a live run")
		}
		if _, _, ok := runs.Enter(managerCtx); ok {
			t.Error("a run began after the signal")
		}
		leave()
		<-managerCtx.Done() // Phase two.
		return nil
	})
	if err := (stopper{runs: runs, release: noLease, log: logr.Discard(), stopping: &atomic.Bool{}}).runUntilStopped(signal, manager); err != nil {
		t.Errorf("want an orderly end, got %v", err)
	}
}

func TestALostElectionIsReturnedAfterTheRunsHaveEnded(t *testing.T) {
	runs := controller.NewAttempts()
	lost := errors.New("leader election lost")
	left := make(chan struct{})
	manager := startFunc(func(managerCtx context.Context) error {
		runCtx, leave, _ := runs.Enter(managerCtx)
		go func() {
			<-runCtx.Done()
			close(left)
			leave()
		}()
		return lost
	})
	if err := (stopper{runs: runs, release: mustNotRelease(t), log: logr.Discard(), stopping: &atomic.Bool{}}).runUntilStopped(t.Context(), manager); !errors.Is(err, lost) {
		t.Errorf("want %v, got %v", lost, err)
	}
	select {
	case <-left:
	default:
		t.Error("it returned while a run was live")
	}
}

// noLease is the release of a manager without leader election.
func noLease() error { return nil }

// mustNotRelease returns a release that fails the test.
func mustNotRelease(t *testing.T) func() error {
	return func() error {
		t.Error("the lease was released")
		return nil
	}
}

// heldFence returns an open fence that ends the runs when it closes.
func heldFence(runs *controller.Attempts) *fence.Fence {
	f := fence.New(fence.Options{LeaseDuration: time.Hour, RetryPeriod: time.Second, OnLost: func(time.Duration) { runs.Stop() }})
	f.RecordRenewal(fence.Now())
	return f
}

func TestAClosedFenceEndsRunsAndManager(t *testing.T) {
	runs := controller.NewAttempts()
	lease := heldFence(runs)
	left := make(chan struct{})
	manager := startFunc(func(managerCtx context.Context) error {
		runCtx, leave, _ := runs.Enter(context.Background())
		lease.RecordLoss()
		<-runCtx.Done()
		if _, _, ok := runs.Enter(managerCtx); ok {
			t.Error("a run began after the loss")
		}
		<-managerCtx.Done() // client-go has not noticed anything.
		go func() {
			close(left)
			leave()
		}()
		return nil
	})
	err := stopper{runs: runs, fence: lease, release: mustNotRelease(t), log: logr.Discard(), stopping: &atomic.Bool{}}.runUntilStopped(t.Context(), manager)
	if !errors.Is(err, fence.ErrLost) {
		t.Errorf("want %v, got %v", fence.ErrLost, err)
	}
	select {
	case <-left:
	default:
		t.Error("it returned while a run was live")
	}
}

func TestALostElectionClosesTheFence(t *testing.T) {
	runs := controller.NewAttempts()
	lease := heldFence(runs)
	lost := errors.New("leader election lost")
	manager := startFunc(func(context.Context) error { return lost })
	if err := (stopper{runs: runs, fence: lease, release: mustNotRelease(t), log: logr.Discard(), stopping: &atomic.Bool{}}).runUntilStopped(t.Context(), manager); !errors.Is(err, lost) {
		t.Errorf("want %v, got %v", lost, err)
	}
	if lease.Held() {
		t.Error("want the fence to close before its time")
	}
}

func TestAnOrderlyStopReleasesTheLeaseLast(t *testing.T) {
	runs := controller.NewAttempts()
	lease := heldFence(runs)
	signal, stop := context.WithCancel(t.Context())
	var order []string
	manager := startFunc(func(managerCtx context.Context) error {
		runCtx, leave, _ := runs.Enter(managerCtx)
		stop()
		<-runCtx.Done()
		order = append(order, "the run ends")
		leave()
		<-managerCtx.Done()
		order = append(order, "the manager ends")
		return nil
	})
	release := func() error {
		order = append(order, "the lease is released")
		return errors.New("no route to the API server") // It runs out instead.
	}
	err := stopper{runs: runs, fence: lease, release: release, log: logr.Discard(), stopping: &atomic.Bool{}}.runUntilStopped(signal, manager)
	if diff := cmp.Diff([]string{"the run ends", "the manager ends", "the lease is released"}, order); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestTheLeaseIsNotReleasedWhileARunIsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := controller.NewAttempts()
		signal, stop := context.WithCancel(t.Context())
		var leave func()
		manager := startFunc(func(managerCtx context.Context) error {
			_, leave, _ = runs.Enter(managerCtx)
			stop()
			<-managerCtx.Done()
			return nil
		})
		err := stopper{runs: runs, fence: heldFence(runs), release: mustNotRelease(t), log: logr.Discard(), stopping: &atomic.Bool{}}.runUntilStopped(signal, manager)
		if err == nil {
			t.Error("want the run that goes on to be an error")
		}
		leave()
	})
}

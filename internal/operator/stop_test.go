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
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/fence"
)

// startFunc is a starter.
type startFunc func(ctx context.Context) error

func (f startFunc) Start(ctx context.Context) error { return f(ctx) }

// newStopped returns a manager of controller-runtime with the stopper, and a controller that notes
// in order when it ends. Nothing of the manager contacts the API server.
func newStopped(t *testing.T, s stopper, order *[]string) ctrl.Manager {
	t.Helper()
	m, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(), GracefulShutdownTimeout: &s.grace})
	if err == nil {
		err = s.addTo(m)
	}
	if err == nil {
		err = m.Add(manager.RunnableFunc(func(ctx context.Context) error {
			<-ctx.Done()
			*order = append(*order, "the controllers end")
			return nil
		}))
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// An orderly stop ends the runs first, while everything that they need goes on; the lease is
// released last.
func TestTheManagerStopsAfterItsRuns(t *testing.T) {
	for why, release := range map[string]error{
		"the lease is released":              nil,
		"or runs out, without an API server": errors.New("no route to the API server"),
	} {
		t.Run(why, func(t *testing.T) {
			runs := controller.NewAttempts()
			var order []string
			stopping := &atomic.Bool{}
			s := stopper{runs: runs, fence: heldFence(runs), grace: time.Minute, log: logr.Discard(), stopping: stopping, release: func() error {
				order = append(order, "the lease is released")
				return release
			}}
			m := newStopped(t, s, &order)
			signal, stop := context.WithCancel(t.Context())
			runCtx, leave, _ := runs.Enter(t.Context())
			go func() {
				<-m.Elected()
				stop()
				<-runCtx.Done()
				if _, _, ok := runs.Enter(t.Context()); ok {
					t.Error("a run began after the signal")
				}
				if stopping.Load() {
					t.Error("the libraries are quiet while a run is live")
				}
				order = append(order, "the run ends")
				leave()
			}()
			err := s.runUntilStopped(signal, m)
			if diff := cmp.Diff([]string{"the run ends", "the controllers end", "the lease is released"}, order); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
			if !stopping.Load() {
				t.Error("what libraries say of the stop is an error")
			}
		})
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
	var order []string
	s := stopper{runs: runs, fence: heldFence(runs), grace: time.Minute, release: mustNotRelease(t), log: logr.Discard(), stopping: &atomic.Bool{}}
	m := newStopped(t, s, &order)
	runCtx, leave, _ := runs.Enter(t.Context())
	go func() {
		<-m.Elected()
		s.fence.RecordLoss() // client-go has not noticed anything.
		<-runCtx.Done()
		if _, _, ok := runs.Enter(t.Context()); ok {
			t.Error("a run began after the loss")
		}
		order = append(order, "the run ends")
		leave()
	}()
	err := s.runUntilStopped(t.Context(), m)
	if diff := cmp.Diff([]string{"the run ends", "the controllers end"}, order); diff != "" || !errors.Is(err, fence.ErrLost) {
		t.Errorf("want %v, got %v\n%s", fence.ErrLost, err, diff)
	}
	if s.stopping.Load() {
		t.Error("what libraries say of the loss is no error")
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

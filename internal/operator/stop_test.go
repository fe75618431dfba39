package operator

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/controller"
)

// startFunc is a manager whose whole life is a function.
type startFunc func(ctx context.Context) error

func (f startFunc) Start(ctx context.Context) error { return f(ctx) }

func TestTheManagerGoesOnUntilTheRunsHaveEnded(t *testing.T) {
	runs := controller.NewRunGroup()
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
	if err := (stopper{runs: runs, log: logr.Discard()}).runUntilStopped(signal, manager); err != nil {
		t.Errorf("want an orderly end, got %v", err)
	}
}

func TestALostLeaseIsAnErrorAfterTheRunsHaveEnded(t *testing.T) {
	runs := controller.NewRunGroup()
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
	if err := (stopper{runs: runs, log: logr.Discard()}).runUntilStopped(t.Context(), manager); !errors.Is(err, lost) {
		t.Errorf("want %v, got %v", lost, err)
	}
	select {
	case <-left:
	default:
		t.Error("it returned while a run was live")
	}
}

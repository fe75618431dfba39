package controller

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/controller/slots"
)

// Runner runs Ansible content and keeps a directory for each CR.
type Runner interface {
	// Run blocks until the run's process tree is gone.
	Run(ctx context.Context, spec runner.Spec, observe func(jobevent.Event)) runner.Result
	// Remove deletes what runs of the CR left on disk.
	Remove(uid string) error
}

// Access opens the Kubernetes API to the runs of a CR.
type Access interface {
	// Grant returns a kubeconfig that acts for the CR until revoke is called.
	Grant(cr *unstructured.Unstructured) (kubeconfig []byte, revoke func(), err error)
}

// Observer watches runs. Its methods are called in the order of the events, by
// one goroutine a run, and must not block for long: the run waits for them.
type Observer interface {
	RunStarted(run jobevent.Run)
	JobEvent(run jobevent.Run, event jobevent.Event)
	RunEnded(run jobevent.Run, outcome jobevent.Outcome, summary jobevent.Summary, elapsed time.Duration)
}

// Forgetter is an Observer that keeps data of CRs.
type Forgetter interface {
	// Forget is called when a CR is gone.
	Forget(watch, object string)
}

// Slots limits how many runs are live in all watches together.
type Slots interface {
	// Acquire waits for a slot; release gives it back.
	Acquire(ctx context.Context, watch string, priority slots.Priority) (release func(), err error)
}

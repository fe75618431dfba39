package controller

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/pkg/content"
)

// interruption is an error that ends an attempt, or its run, although nothing failed. Another
// attempt or another manager does the rest for the CR.
type interruption struct {
	text string
	// unwanted is true if the CR must not have the run any more: content.ErrUnwanted.
	unwanted bool
	// again is the pause until the CR is reconciled once more; 0: when its next event comes.
	again time.Duration
}

var (
	// errStopped: the manager stops.
	errStopped = &interruption{text: "the manager is stopping"}
	// errFenced: this manager may have lost its lease. The next leader does the rest for the CR.
	errFenced = &interruption{text: "this manager may have lost its lease"}
	// ErrLocked means that the CR's run of another manager has not ended yet.
	ErrLocked error = &interruption{text: "a run of another manager has not ended", again: firstBackoff}
	// errPaused: the CR is paused since it was read. The next attempt reports that.
	errPaused = &interruption{text: "the custom resource is paused", again: immediately}
	// errGone: the attempt's CR was deleted, or another object has its name now. The event of the
	// deletion may be missed: the next attempt drops the CR's state, or finds its successor.
	errGone = &interruption{text: "the custom resource is gone", unwanted: true, again: firstBackoff}
	// errDeleted: the CR is being deleted and has no finalizer of ours.
	errDeleted = &interruption{text: "the custom resource is being deleted", unwanted: true}
	// errSuperseded: the CR is being deleted, and the finalizer's run need not wait for the end of
	// this run. It does not end the finalizer's run.
	errSuperseded = &interruption{text: "the finalizer runs next: the custom resource is being deleted", unwanted: true}
	// errCanceled: the CR's annotation asks for the end of the run.
	errCanceled = &interruption{text: "it was canceled by the annotation " + cancelSuffix, unwanted: true, again: firstBackoff}
	// errAbandoned: the CR is to go without its finalizer's run.
	errAbandoned = &interruption{text: "the custom resource is abandoned", unwanted: true, again: immediately}
	// errEvent ends the wait for a slot: the CR has to be read again.
	errEvent = &interruption{text: "an event of the custom resource came"}
)

// Error implements error.
func (i *interruption) Error() string { return i.text }

// Is reports whether it is content.ErrUnwanted, whose text would add nothing.
func (i *interruption) Is(target error) bool { return i.unwanted && target == content.ErrUnwanted }

// isInterruption reports whether an error is an interruption.
func isInterruption(err error) bool {
	_, is := errors.AsType[*interruption](err)
	return is
}

// causeOf returns the interruption that has ended a context; nil if there is none.
func causeOf(ctx context.Context) *interruption {
	cause, _ := errors.AsType[*interruption](context.Cause(ctx))
	return cause
}

// errorResult returns the result of an attempt that met an error.
func errorResult(err error) (reconcile.Result, error) {
	if i, is := errors.AsType[*interruption](err); is {
		return reconcile.Result{RequeueAfter: i.again}, nil
	}
	return reconcile.Result{}, err
}

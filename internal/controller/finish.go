package controller

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/pkg/content"
)

// finish is the only exit of an attempt. It writes the conclusion to the CR's status,
// removes the finalizer after a successful finalizer run, makes an Event of a changed
// outcome, and returns when the CR is reconciled again. A conclusion that cannot be written
// stays in the state, and the next attempt writes it without a run.
func (r *Reconciler) finish(ctx context.Context, a *attempt, cause error) (reconcile.Result, error) {
	if cause != nil {
		return errorResult(cause)
	}
	if a.conclusion != nil {
		err := r.record(ctx, a)
		a.state.unwritten = ignoreGone(err) != nil
		if errors.Is(err, errRefused) {
			return r.retryRecord(ctx, a, err), nil
		}
		if err != nil {
			return errorResult(err)
		}
		if a.conclusion.written != nil {
			a.conclusion.written()
			a.conclusion.written = nil // It holds the work, and the conclusion stays in the state.
		}
		r.announce(a)
		r.setDue(ctx, a)
	}
	return r.requeue(ctx, a), nil
}

// setDue records when content runs again although nothing changes. The pause begins when
// the conclusion has been written.
func (r *Reconciler) setDue(ctx context.Context, a *attempt) {
	after := requeueAfter(a.conclusion, backoffAfter(a.state.failures, r.Defaults.MaxBackoff))
	log.FromContext(ctx).V(1).Info("reconcile finished", "reason", a.conclusion.Outcome.Reason, "requeueAfter", after)
	if after > 0 {
		a.state.due = r.Clock.Now().Add(after)
	}
}

// retryRecord returns the pause after which a later attempt writes a conclusion that the
// API server refused. The pauses are those after failed runs. The log says it once.
func (r *Reconciler) retryRecord(ctx context.Context, a *attempt, err error) reconcile.Result {
	a.conclusion.refusals++
	if a.conclusion.refusals == 1 {
		log.FromContext(ctx).Error(err, "the API server refuses the status with the result of the run; retrying with growing pauses. The resource does not run again until this status is written")
	}
	return reconcile.Result{RequeueAfter: backoffAfter(a.conclusion.refusals, r.Defaults.MaxBackoff)}
}

// requeue returns when the CR is reconciled again if no event comes.
func (r *Reconciler) requeue(ctx context.Context, a *attempt) reconcile.Result {
	var after time.Duration
	switch next := nextLook(a, r.Clock.Now()); {
	case a.step == rewrite:
		after = immediately // The event of this attempt may require a run, too.
	case a.step == ignore, a.step == reportPaused, next.IsZero():
	default:
		after = max(next.Sub(r.Clock.Now()), immediately)
	}
	if a.step == upToDate || a.step == rest {
		log.FromContext(ctx).V(1).Info("nothing changed since its last run", "comesAgainAfter", after)
	}
	if after == 0 {
		return reconcile.Result{}
	}
	priority := slots.Normal
	if a.version.deleting {
		priority = slots.Urgent
	}
	return reconcile.Result{RequeueAfter: after, Priority: queuePriority(priority)}
}

// errorResult returns the result of an attempt that met an error. A CR that is gone is reconciled
// once more, because the event of its deletion may be missed. That attempt drops the CR's state or
// finds its successor. A CR is also reconciled once more if its run has to wait for another
// manager's, or if it is abandoned or paused.
func errorResult(err error) (reconcile.Result, error) {
	switch {
	case errors.Is(err, errGone), errors.Is(err, ErrLocked):
		return reconcile.Result{RequeueAfter: firstBackoff}, nil
	case errors.Is(err, errAbandoned), errors.Is(err, errPaused):
		return reconcile.Result{RequeueAfter: immediately}, nil
	}
	return reconcile.Result{}, ignoreGone(err)
}

// queuePriority returns the priority as the queue takes it.
func queuePriority(p slots.Priority) *int { return new(int(p)) }

// record writes the conclusion to the API server.
func (r *Reconciler) record(ctx context.Context, a *attempt) error {
	finalized := a.removesFinalizer()
	if finalized && len(a.cr.GetFinalizers()) == 1 {
		return r.removeFinalizer(ctx, a) // The object goes with it: nobody would read a status.
	}
	if err := r.writeResult(ctx, a); err != nil {
		return err
	}
	if finalized {
		return r.removeFinalizer(ctx, a)
	}
	return nil
}

// report returns the status of a conclusion.
func (c *conclusion) report() status.Report {
	report := status.Finished(c.version.generation, c.Result).WithRun(status.LastRun{Ended: c.ended, Next: c.next, Version: c.Version})
	report = report.WithRequest(c.answered).Repeated(c.stalled).ReadyBy("", c.wroteReady)
	// A role that asked for a requeue must run again, also after a restart of the manager.
	if c.Outcome.Verdict == content.Succeeded && !c.finalizing && c.RequeueAfter == 0 && len(c.Missing) == 0 {
		report = report.WithDigest(c.digest)
	}
	return report
}

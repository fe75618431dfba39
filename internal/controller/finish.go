package controller

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/controller/status"
)

// finish is the only exit of an attempt: it writes the status, removes the finalizer when
// the finalizer's run succeeded, announces a changed outcome, and says when the CR comes
// again. What cannot be written is remembered and written by the next attempt; the content
// does not run again for it.
func (r *Reconciler) finish(ctx context.Context, a *attempt, cause error) (reconcile.Result, error) {
	if cause != nil {
		return ended(cause)
	}
	if a.verdict != nil {
		err := r.record(ctx, a)
		r.states.update(a.request.NamespacedName, func(st *state) { st.unwritten = ignoreGone(err) != nil })
		if errors.Is(err, errRefused) {
			return r.recordLater(ctx, a, err), nil
		}
		if err != nil {
			return ended(err)
		}
		r.announce(a)
		r.setDue(ctx, a)
	}
	return r.comesAgain(ctx, a), nil
}

// setDue notes when content runs again although nothing changes. The pause begins when
// the verdict is written.
func (r *Reconciler) setDue(ctx context.Context, a *attempt) {
	failures := r.states.get(a.request.NamespacedName).failures
	after := requeueAfter(a.verdict, backoffAfter(failures, r.Defaults.MaxBackoff))
	log.FromContext(ctx).V(1).Info("attempt finished", "reason", a.verdict.outcome.Reason, "requeueAfter", after)
	if after > 0 {
		due := r.Clock.Now().Add(after)
		r.states.update(a.request.NamespacedName, func(st *state) { st.due = due })
	}
}

// recordLater leaves a verdict that the API server refuses to a later attempt. The pauses
// are those that follow upon failed runs, and the log says so once.
func (r *Reconciler) recordLater(ctx context.Context, a *attempt, err error) reconcile.Result {
	a.verdict.refusals++
	if a.verdict.refusals == 1 {
		log.FromContext(ctx).Error(err, "the API server refuses the result; it is written again with ever longer pauses, and nothing runs for the resource until it is taken")
	}
	return reconcile.Result{RequeueAfter: backoffAfter(a.verdict.refusals, r.Defaults.MaxBackoff)}
}

// comesAgain says when the CR is looked at again although no event tells of it.
func (r *Reconciler) comesAgain(ctx context.Context, a *attempt) reconcile.Result {
	var after time.Duration
	switch due := r.states.get(a.request.NamespacedName).due; {
	case a.step == report:
		after = immediately // The event that led here may have asked for more.
	case a.step == skip, a.step == reportPaused, due.IsZero():
	default:
		after = max(due.Sub(r.Clock.Now()), immediately)
	}
	if a.step == rest {
		log.FromContext(ctx).V(1).Info("nothing changed since its last run", "comesAgainAfter", after)
	}
	if after == 0 {
		return reconcile.Result{}
	}
	class := slots.Usual
	if a.version.deleting {
		class = slots.Urgent
	}
	return reconcile.Result{RequeueAfter: after, Priority: priority(class)}
}

// ended returns what ends an attempt that has met an error. A CR that turned out to be
// gone comes once more, to be forgotten, or for a successor: no event may tell of its end.
func ended(err error) (reconcile.Result, error) {
	if errors.Is(err, errGone) {
		return reconcile.Result{RequeueAfter: firstBackoff}, nil
	}
	return reconcile.Result{}, ignoreGone(err)
}

// priority is the place that the queue gives a class.
func priority(class slots.Class) *int { return new(int(class)) }

// record writes the verdict to the API server.
func (r *Reconciler) record(ctx context.Context, a *attempt) error {
	finalized := a.verdict.finalizing && a.verdict.outcome.Verdict == jobevent.Succeeded
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

func (v *verdict) report() status.Report {
	if v.refused {
		return status.Refused(v.version.generation, v.outcome.Reason, v.outcome.Message)
	}
	report := status.Finished(v.version.generation, v.outcome, v.summary)
	// A role that asked to come again is not done, whatever manager is there then.
	if v.outcome.Verdict == jobevent.Succeeded && !v.finalizing && v.summary.Requeue == 0 {
		report = report.WithDigest(v.digest)
	}
	return report
}

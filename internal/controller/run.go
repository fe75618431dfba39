package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/pkg/content"
)

// prepare reads the CR's annotations and has its content prepared. If either is invalid, the
// CR is refused: nothing runs until it changes, and no slot is needed. A finalizer run is
// not refused for an invalid annotation. ctx ends when the manager stops.
func (r *Reconciler) prepare(ctx context.Context, a *attempt) {
	var err error
	a.period, err = r.periodOf(a.cr)
	a.work, a.refusal = r.Content.Prepare(ctx, content.Request{
		Object: a.cr, Finalizing: a.finalizing, Requested: a.requested(), Interrupted: status.ShowsRun(a.cr),
	})
	if err != nil && !a.finalizing {
		if a.refusal != nil && a.refusal.Reason == content.ReasonInvalidAnnotation {
			err = errors.Join(err, errors.New(a.refusal.Message))
		}
		a.refusal = content.Refusal(content.ReasonInvalidAnnotation, err)
	}
	if a.username, err = r.Watch.ServiceAccount.Username(a.cr, r.Defaults.ServiceAccount); err != nil {
		a.refusal = content.Refusal(content.ReasonInvalidSpec, err)
	}
	if a.refusal != nil { // It is a failure, and fit to be shown, whatever the content made it.
		a.refusal = content.Refusal(a.refusal.Reason, errors.New(a.refusal.Message))
	}
}

// run runs the content and concludes the attempt. runCtx ends when the run must end; ctx
// is that of the attempt, whose writes go on then.
func (r *Reconciler) run(ctx, runCtx context.Context, a *attempt) error {
	runCtx, cancel := context.WithCancelCause(runCtx)
	defer cancel(nil)
	end := func(cause error) {
		if cause != errSuperseded || !a.finalizing { //nolint:errorlint // A cause is compared by identity: the handler sets it.
			cancel(cause)
		}
	}
	if !a.mailbox.listenInRun(a.readCtx, a.cr.GetUID(), end) {
		return nil
	}
	switch { // The run would be ended at once.
	case r.Attempts.Stopped():
		return errStopped
	case runCtx.Err() != nil:
		return context.Cause(runCtx)
	}
	if a.digest == "" {
		a.digest = r.digestWith(runCtx, a)
	}
	a.state.throttle.begin(a.trigger, r.Clock.Now(), r.Defaults.MaxBackoff) // To look costs requests, so that it takes a token as a run does.
	if result, rests := r.settled(runCtx, a, a.rests); rests {
		r.conclude(a, conclusion{Result: result, period: a.period, digest: a.digest})
		return nil
	}
	unlock, err := r.lock(runCtx, a)
	if err != nil {
		return err
	}
	defer unlock() // After the access has ended.
	grant, err := r.Access.Grant(a.cr, a.username, a.work.Labels())
	if err != nil {
		return fmt.Errorf("open the API to the run: %w", err)
	}
	defer grant.Revoke()
	at := newProgress(func(to Phase) { r.states.move(a.entry, to) })
	job := content.Job{Run: r.describe(a), Kubeconfig: grant.Kubeconfig, Working: func(task string) { at.begin(task, r.Clock.Now()) }, Located: at.placed, Denied: grant.Denied}
	if result, settled := r.settled(runCtx, a, func() (content.Result, bool) { return a.work.Settled(runCtx, job) }); settled {
		r.conclude(a, conclusion{Result: result, period: a.period, digest: a.digest})
		return nil
	}
	if err := r.reportStart(ctx, a); err != nil {
		return err
	}
	a.beginRun()
	r.states.move(a.entry, PhaseRunning)
	runCtx, job.Run = r.trace(runCtx, job.Run)
	result := r.runShown(ctx, runCtx, a, job, at)
	r.warnOfCreated(ctx, a)
	a.readies.addOf(a.cr)
	return r.ended(runCtx, a, job.Run, result, grant.Readies.beyond(&a.readies))
}

// ended concludes the attempt of a run that has ended here, unless there is nothing to report of it.
func (r *Reconciler) ended(runCtx context.Context, a *attempt, run content.Run, result content.Result, wroteReady bool) error {
	if !r.leads() {
		return errFenced // The run was ended, and the next leader repeats it, or goes on with it.
	}
	if result.Detached {
		return errStopped
	}
	if cause := context.Cause(runCtx); cause == errGone || cause == errAbandoned { //nolint:errorlint // A cause is compared by identity: the handler sets it.
		return cause
	}
	c := conclusion{Result: result, period: a.period, digest: a.digest, ended: r.Clock.Now(), traceID: run.TraceID, wroteReady: wroteReady, written: a.work.ResultStored}
	c.canceled = result.Outcome.Verdict == content.Canceled && context.Cause(runCtx) == errCanceled //nolint:errorlint // As above.
	r.conclude(a, c)
	return nil
}

// lock takes the lock of the CR's run. Later writes to the status succeed only while the CR belongs
// to this manager.
func (r *Reconciler) lock(ctx context.Context, a *attempt) (unlock func(), err error) {
	if r.Locks == nil {
		return func() {}, nil
	}
	unlock, err = r.Locks.Lock(ctx, a.cr.GetUID())
	waits := errors.Is(err, ErrLocked)
	if waits && !a.state.locked {
		log.FromContext(ctx).Info("waiting for the resource's run in another shard to end", "reason", err.Error())
	}
	a.state.locked = waits
	return unlock, err
}

// runShown runs the content, and shows its current step in the status until it ends, also by a
// panic.
func (r *Reconciler) runShown(ctx, runCtx context.Context, a *attempt, job content.Job, at *progress) content.Result {
	defer r.showProgress(ctx, a, at)()
	return r.observe(runCtx, a.work, job)
}

// warnOfCreated logs the objects that a finalizer's run has created. Kubernetes deletes them with
// the CR, even if the run succeeded.
func (r *Reconciler) warnOfCreated(ctx context.Context, a *attempt) {
	if created := r.Writers.takeCreated(a.cr.GetUID()); created != nil && a.finalizing {
		log.FromContext(ctx).Info("WARNING: objects that the finalizer's run created will be deleted with the resource, which owns them; to keep an object, annotate it with helm.sh/resource-policy: keep", "objects", created)
	}
}

// reportStart writes the beginning of a run to the status. If the CR is paused by now, it writes
// nothing and returns errPaused. So a status that shows a pause is one: no run begins any more
// that was decided before it. It returns errFenced if another manager may lead by then.
func (r *Reconciler) reportStart(ctx context.Context, a *attempt) error {
	report := status.Started(a.cr.GetGeneration(), a.seenBefore())
	if a.asks() {
		report = report.AskedFor()
	}
	halted, started := false, r.merge(report)
	err := r.changeInterim(ctx, a, func(current *unstructured.Unstructured) []status.Operation {
		if halted = paused(&r.Watch, current); halted {
			return nil
		}
		return started(current)
	})
	switch {
	case err == nil && halted:
		return errPaused
	case err == nil && !r.leads():
		return errFenced
	}
	return err
}

// beginRun marks the beginning of a run in the CR's state. If the run comes to no conclusion,
// last stays nil and content runs again.
func (a *attempt) beginRun() {
	a.setVersion()
	a.state.last = nil
	a.mailbox.take()
}

// settled reports whether the content finds everything as a run would leave it. Triggers that arrive
// while the content looks are kept.
func (r *Reconciler) settled(ctx context.Context, a *attempt, look func() (content.Result, bool)) (content.Result, bool) {
	dirty := a.mailbox.take()
	result, settled := look()
	if settled && ctx.Err() == nil && r.leads() {
		return result, true
	}
	a.mailbox.putBack(dirty)
	return content.Result{}, false
}

// rests reports whether the content knows without a look that nothing has changed. Where somebody
// asks, there is a look.
func (a *attempt) rests() (content.Result, bool) {
	if a.trigger != scheduled && a.trigger != bySelfOrChild {
		return content.Result{}, false
	}
	return a.work.UpToDate()
}

// describe returns the description of the attempt's run.
func (r *Reconciler) describe(a *attempt) content.Run {
	return content.Run{
		ID:         string(uuid.NewUUID()),
		Watch:      r.Watch.GVK,
		Object:     named(a.request),
		Generation: a.cr.GetGeneration(),
		Trigger:    a.cause(r.Clock.Now()),
		Finalizer:  a.finalizing,
		Heading:    r.Watch.ContentKind().Heading,
	}
}

// named returns the CR's name as observers get it: "namespace/name", or "name".
func named(req reconcile.Request) string { return strings.TrimPrefix(req.String(), "/") }

// removeDirectory deletes the run directory of a CR that is gone. A failure is only
// logged: the sweeper tries again.
func (r *Reconciler) removeDirectory(ctx context.Context, uid string) {
	if err := r.Content.Remove(uid); err != nil {
		log.FromContext(ctx).Error(err, "could not remove the run directory", "uid", uid)
	}
}

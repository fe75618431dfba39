package engine

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Terminate implements content.Engine.
func (e *Engine) Terminate(ctx context.Context, uid string) error {
	return e.Executor.Terminate(ctx, uid)
}

// execution has the fields of work for the execution of its orders.
type execution struct {
	attempt run.Attempt
	// earlier is true while there may be an earlier run, and resumed if that has succeeded, and its
	// request was the same.
	earlier, resumed bool
	// detached and account are those of the last run.
	detached bool
	account  content.Account
}

// findEarlier finds out whether there may be an earlier run, once the values are known. The content of
// valuesFrom's objects is not part of the request: it is compared with the release after the run.
func (w *work) findEarlier(ctx context.Context, r content.Request) {
	more := map[string]any{}
	if w.values != nil {
		more["chart"], more["digest"] = w.values.ChartVersion(), w.values.Digest
	}
	w.execution.attempt = run.NewAttempt(r, more)
	w.execution.earlier = w.engine.Executor.HasEarlier(ctx, string(w.cr.GetUID()), w.execution.attempt)
}

// Resumable implements content.Work.
func (w *work) Resumable() bool { return w.execution.earlier }

// ResultStored implements content.Work.
func (w *work) ResultStored() { w.engine.Executor.ResultStored(string(w.cr.GetUID())) }

// resume returns when nothing of an earlier run executes any more: before, the state of the release is
// not known. over is true if the result is that of the earlier run, which did not succeed.
func (w *work) resume(ctx context.Context, job content.Job) (result content.Result, over bool) {
	if !w.execution.earlier {
		return content.Result{}, false
	}
	spec := w.runOf(ctx, job, order.Order{})
	portable, err := spec.Portable()
	if err != nil {
		return irreconcilable(ctx, err), true
	}
	earlier := w.engine.Executor.Resume(ctx, portable, w.located(job), spec.Hear)
	if earlier == nil {
		return content.Result{}, false
	}
	w.execution.detached, w.execution.account = earlier.Detached, earlier.Account()
	if earlier.Outcome.Verdict == content.Succeeded {
		w.execution.resumed = true
		return content.Result{}, false
	}
	action := order.Install
	switch {
	case w.finalizing:
		action = order.Uninstall
	case w.hadRelease():
		action = order.Upgrade
	}
	return w.unsuccessful(earlier.Outcome, action), true
}

// located returns the attempt, whose place the job's CR shows.
func (w *work) located(job content.Job) run.Attempt {
	attempt := w.execution.attempt
	attempt.Located = job.Located
	return attempt
}

// begin notes in the ledger that an attempt begins, before anything else, and prepares the records for it.
func (w *work) begin(ctx context.Context, f found, o *order.Order) error {
	f.entry.Namespace, f.entry.Name = w.namespace, w.name
	f.entry.Begin(o.Action)
	err := w.engine.ledger.Put(ctx, f.entry)
	if goes := apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause); err != nil && !(goes && o.Action == order.Uninstall) {
		return err // A release may still be removed while the operator's own namespace is being deleted.
	}
	f.records.Known = f.entry.Revisions
	if err := f.records.Restate(ctx, f.history.Revisions); err != nil {
		return err
	}
	o.Attempt, o.Revisions = f.entry.Attempt, slices.Clone(f.entry.Revisions)
	for i := range o.Revisions {
		o.Revisions[i].Names = order.Names{}
	}
	return f.records.Unlink(ctx, f.history.Revisions)
}

// execute has chart-exec carry out an order for the release as it was found.
func (w *work) execute(ctx context.Context, job content.Job, f found, o order.Order) content.Outcome {
	if err := w.begin(ctx, f, &o); err != nil {
		return irreconcilable(ctx, err).Outcome
	}
	spec := w.runOf(ctx, job, o)
	portable, err := spec.Portable()
	if err != nil {
		return irreconcilable(ctx, err).Outcome
	}
	attempt := w.located(job)
	attempt.Interrupted = false // Nothing is left of an earlier run: this is another one.
	ran := w.engine.Executor.Run(ctx, portable, attempt, spec.Hear)
	w.execution.detached, w.execution.account = ran.Detached, content.Account{Start: ran.Account().Start}
	return ran.Outcome
}

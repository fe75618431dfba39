package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/runner"
	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Remote is a Runner whose runs execute outside of this manager's process, and may outlive it: then
// their Result is Detached. Only orders that change the cluster go there. A release is looked at, and
// its drift repaired, here.
type Remote interface {
	Runner

	// RunRemote is Run.
	RunRemote(ctx context.Context, spec runner.Spec, attempt process.Attempt) content.Result
	// HasEarlier reports whether there may be an earlier run of the CR.
	HasEarlier(ctx context.Context, uid string, attempt process.Attempt) bool
	// Resume returns when nothing of an earlier run executes any more, with its result if its request
	// was the same, else nil. It needs no order.
	Resume(ctx context.Context, spec runner.Spec, attempt process.Attempt) *content.Result
	// ResultStored is called when the result of the CR's run has been written.
	ResultStored(uid string)
	// Terminate is that of content.Engine.
	Terminate(ctx context.Context, uid string) error
}

// Terminate implements content.Engine.
func (e *Engine) Terminate(ctx context.Context, uid string) error {
	if remote, is := e.Runner.(Remote); is {
		return remote.Terminate(ctx, uid)
	}
	return nil
}

// remote has the fields of work for a Remote; the zero value if its runs execute here.
type remote struct {
	Remote

	attempt process.Attempt
	// earlier is true while there may be an earlier run, and resumed if that has succeeded, and its
	// request was the same.
	earlier, resumed bool
	// ran is the result of the last remote run.
	ran content.Result
}

// findEarlier finds out whether there may be an earlier run, once the values are known.
func (w *work) findEarlier(ctx context.Context, r content.Request) {
	there, is := w.engine.Runner.(Remote)
	if !is {
		return
	}
	w.remote = remote{Remote: there, attempt: process.Attempt{
		Request: w.digestOf(r), Interrupted: r.Interrupted, Generation: w.cr.GetGeneration(), Finalizing: w.finalizing,
	}}
	w.remote.earlier = there.HasEarlier(ctx, string(w.cr.GetUID()), w.remote.attempt)
}

// digestOf returns the digest of the run's request. The content of valuesFrom's objects is not part of
// it: it is compared with the release after the run.
func (w *work) digestOf(r content.Request) string {
	asked := map[string]any{
		"generation": w.cr.GetGeneration(), "annotations": w.cr.GetAnnotations(), "values": r.Spec(), "overrides": r.Overrides, "finalizing": w.finalizing,
	}
	if w.values != nil {
		asked["chart"], asked["digest"] = w.values.ChartVersion(), w.values.Digest
	}
	text, _ := json.Marshal(asked) // All of it came as JSON and can be JSON again.
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Resumable implements content.Work.
func (w *work) Resumable() bool { return w.remote.earlier }

// ResultStored implements content.Work.
func (w *work) ResultStored() {
	if w.remote.Remote != nil {
		w.remote.ResultStored(string(w.cr.GetUID()))
	}
}

// resume returns when nothing of an earlier run executes any more: before, the state of the release is
// not known. over is true if the result is that of the earlier run, which did not succeed.
func (w *work) resume(ctx context.Context, job content.Job) (result content.Result, over bool) {
	if !w.remote.earlier {
		return content.Result{}, false
	}
	earlier := w.remote.Resume(ctx, w.runOf(ctx, job, order.Order{}), w.placed(job))
	if earlier == nil {
		return content.Result{}, false
	}
	w.remote.ran = *earlier
	if earlier.Outcome.Verdict == content.Succeeded {
		w.remote.resumed = true
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

func (w *work) placed(job content.Job) process.Attempt {
	attempt := w.remote.attempt
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
	if w.remote.Remote == nil {
		return w.engine.Runner.Run(ctx, spec)
	}
	attempt := w.placed(job)
	attempt.Interrupted = false // Nothing is left of an earlier run: this is another one.
	w.remote.ran = w.remote.RunRemote(ctx, spec, attempt)
	return w.remote.ran.Outcome
}

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/pkg/content"
)

var errPanicked = errors.New("internal error of the manager; its log has the stack")

// observe runs the work and tells the observers when it starts and ends. The message of a failure
// names the rights that the run lacked, that of a canceled run why it was ended. A panic is a failure: the status says so, and the usual
// pauses hold, where the queue would repeat the attempt within milliseconds.
func (r *Reconciler) observe(ctx context.Context, work content.Work, job content.Job) (result content.Result) {
	result.Outcome = *content.Refusal(content.ReasonRunnerCrashed, errPanicked)
	started := r.Clock.Now()
	for _, o := range r.Observers {
		o.RunStarted(job.Run)
	}
	defer func() {
		if cause := recover(); cause != nil {
			log.FromContext(ctx).Error(errPanicked, "the content panicked", "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		}
		for _, o := range r.Observers {
			o.RunEnded(job.Run, result, cmp.Or(result.Account.Duration, r.Clock.Now().Sub(started)))
		}
	}()
	result = work.Run(ctx, job)
	result.Outcome = result.Outcome.Explained(job)
	if cause := context.Cause(ctx); cause != nil && result.Outcome.Verdict == content.Canceled {
		result.Outcome.Message = cause.Error()
	}
	return result
}

// trace begins the trace of a run, if an observer records traces. RunEnded ends it.
func (r *Reconciler) trace(ctx context.Context, run content.Run) (context.Context, content.Run) {
	for _, o := range r.Observers {
		var id string
		ctx, id = o.Trace(ctx, run) //nolint:fatcontext // One observer records traces; others return ctx.
		run.TraceID = cmp.Or(id, run.TraceID)
	}
	if run.TraceID != "" {
		ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("trace_id", run.TraceID))
	}
	return ctx, run
}

// forgetRuns makes the observers forget the runs of a CR that is gone.
func (r *Reconciler) forgetRuns(object string) {
	for _, o := range r.Observers {
		o.Forget(r.Watch.GVK, object)
	}
}

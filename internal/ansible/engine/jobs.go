package engine

import (
	"context"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/pkg/content"
)

// attemptOf returns the attempt of a request.
func (w *work) attemptOf(r content.Request) run.Attempt {
	return run.NewAttempt(r, map[string]any{"version": w.engine.Version, "settings": []int{w.settings.verbosity, w.settings.maxArtifacts}})
}

// runInJob runs the content in a Job, or goes on with such a run of an earlier manager.
func (w *work) runInJob(ctx context.Context, job content.Job, spec runner.Spec, observe func(jobevent.Event)) content.Result {
	portable, err := spec.Portable()
	if err != nil {
		return content.Result{Outcome: *content.Refusal(content.ReasonRunnerCrashed, err)}
	}
	attempt := w.attempt
	attempt.Located = job.Located
	ran := w.engine.Jobs.Run(ctx, portable, attempt, runner.Decoded(ctx, observe))
	summary, err := runner.SummaryOf(ran)
	if err != nil {
		ran.Outcome = *content.Refusal(content.ReasonRunnerCrashed, err)
	}
	result := w.result(ran.Outcome, summary, run.StartJob)
	result.Detached, result.Account.Duration = ran.Detached, ran.Account().Duration
	return result
}

// Resumable implements content.Work.
func (w *work) Resumable() bool { return w.resumable }

// ResultStored implements content.Work.
func (w *work) ResultStored() {
	if w.engine.Jobs != nil {
		w.engine.Jobs.ResultStored(w.uid)
	}
}

// Terminate implements content.Engine.
func (e *Engine) Terminate(ctx context.Context, uid string) error {
	if e.Jobs == nil {
		return nil
	}
	return e.Jobs.Terminate(ctx, uid)
}

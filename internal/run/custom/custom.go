// Package custom has the runs of an engine of a Go program execute elsewhere. In the manager the engine
// prepares a CR as ever. An Executor carries the request to the same program in another process, whose
// engine prepares it again and runs it.
package custom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Engine is a content.Engine whose runs an Executor executes.
type Engine struct {
	content.Engine

	Executor run.Executor
	// Timeout ends a run; 0 means no timeout.
	Timeout time.Duration
}

// Prepare implements content.Engine.
func (e *Engine) Prepare(ctx context.Context, r content.Request) (content.Work, *content.Outcome) {
	inner, refusal := e.Engine.Prepare(ctx, r)
	if refusal != nil || r.Gone {
		return inner, refusal
	}
	w := &work{Work: inner, engine: e, request: r, uid: string(r.Object.GetUID())}
	w.attempt = run.NewAttempt(r, map[string]any{"digest": e.Digest()})
	w.resumable = e.Executor.IsResumable(ctx, w.uid, w.attempt)
	return w, nil
}

// Remove implements content.Engine.
func (e *Engine) Remove(uid string) error {
	return errors.Join(e.Executor.Remove(uid), e.Engine.Remove(uid))
}

// Terminate implements content.Engine.
func (e *Engine) Terminate(ctx context.Context, uid string) error {
	return errors.Join(e.Executor.Terminate(ctx, uid), e.Engine.Terminate(ctx, uid))
}

// work is the work of the program's engine, which runs elsewhere.
type work struct {
	content.Work

	engine    *Engine
	request   content.Request
	uid       string
	attempt   run.Attempt
	resumable bool
}

// Settled implements content.Work. A run that has started already comes first.
func (w *work) Settled(ctx context.Context, job content.Job) (content.Result, bool) {
	if w.resumable {
		return content.Result{}, false
	}
	return w.Work.Settled(ctx, job)
}

// UpToDate implements content.Work.
func (w *work) UpToDate() (content.Result, bool) {
	if w.resumable {
		return content.Result{}, false
	}
	return w.Work.UpToDate()
}

// Resumable implements content.Work.
func (w *work) Resumable() bool { return w.resumable }

// ResultStored implements content.Work.
func (w *work) ResultStored() { w.engine.Executor.ResultStored(w.uid) }

// payload is the input of a run.
type payload struct {
	Request content.Request
	Run     content.Run
}

// Run implements content.Work.
func (w *work) Run(ctx context.Context, job content.Job) content.Result {
	text, err := json.Marshal(payload{w.request, job.Run})
	if err != nil {
		return content.Result{Outcome: *content.Refusal(content.ReasonRunnerCrashed, fmt.Errorf("encode the run: %w", err))}
	}
	attempt := w.attempt
	attempt.Located = job.Located
	ran := w.engine.Executor.Run(ctx, run.Spec{
		UID: w.uid, ID: job.Run.ID, Watch: job.Run.Watch.String(), CR: job.Run.Object, Kubeconfig: job.Kubeconfig, Timeout: w.engine.Timeout, Payload: text,
	}, attempt, func(task []byte) {
		var name string
		if json.Unmarshal(task, &name) == nil {
			job.Working(content.Shown(name))
		}
	})
	var result content.Result
	if ran.Detail != nil {
		if err := utiljson.Unmarshal(ran.Detail, &result); err != nil { // Whole numbers of fields stay whole.
			ran.Outcome = *content.Refusal(content.ReasonRunnerCrashed, fmt.Errorf("read the result of the run: %w", err))
		}
	}
	result.Outcome, result.Detached = ran.Outcome, ran.Detached
	account := ran.Account()
	result.Account.Start, result.Account.Duration = account.Start, account.Duration
	return result
}

// Program returns the program that executes runs of the engine in another process.
func Program(engine content.Engine) run.Program {
	return func(ctx context.Context, spec run.Spec, emit func(event []byte)) run.Result {
		var p payload
		if err := utiljson.Unmarshal(spec.Payload, &p); err != nil {
			return run.Failed(fmt.Errorf("read the run: %w", err))
		}
		began := time.Now()
		result := execute(ctx, engine, p, spec, emit)
		ran := run.Result{Outcome: result.Outcome, Started: began, Ended: time.Now()}
		ran.Outcome.Message = content.Shown(ran.Outcome.Message)
		result.Outcome = content.Outcome{}
		var err error
		if ran.Detail, err = json.Marshal(result); err != nil {
			return run.Failed(fmt.Errorf("encode the result of the run: %w", err))
		}
		return ran
	}
}

func execute(ctx context.Context, engine content.Engine, p payload, spec run.Spec, emit func(event []byte)) content.Result {
	work, refusal := engine.Prepare(ctx, p.Request)
	if refusal != nil {
		return content.Result{Outcome: *refusal}
	}
	timed := ctx
	if spec.Timeout > 0 {
		var cancel context.CancelFunc
		timed, cancel = context.WithTimeout(ctx, spec.Timeout)
		defer cancel()
	}
	p.Run.ID = spec.ID
	result := work.Run(timed, content.Job{
		Run: p.Run, Kubeconfig: spec.Kubeconfig, Located: func(string, string) {},
		Working: func(task string) {
			name, _ := json.Marshal(task) // It is a text.
			emit(name)
		},
	})
	if ctx.Err() == nil && timed.Err() != nil && result.Outcome.Verdict != content.Succeeded {
		result.Outcome = content.Outcome{Verdict: content.Failed, Reason: content.ReasonTimeout, Message: fmt.Sprintf("the run took longer than %s", spec.Timeout)}
	}
	return result
}

// Package engine makes Ansible's roles and playbooks a kind of content that the controller can run:
// CR → variables → a run of ansible-runner → its result in the status.
//
// It does not decide when something runs, write status, or know the API server.
package engine

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Runner runs Ansible content and keeps a directory for each CR.
type Runner interface {
	// Run blocks until the run's process tree is gone.
	Run(ctx context.Context, spec runner.Spec, observe func(jobevent.Event)) runner.Result
	// Remove deletes the files that runs of the CR left on disk.
	Remove(uid string) error
}

// Observer is a content.Observer that also sees the job events of runs, in their order.
type Observer interface {
	content.Observer

	JobEvent(run content.Run, event jobevent.Event)
}

// Defaults are the manager's settings where neither the watch nor the CR has one.
type Defaults struct {
	// Verbosity is Ansible's, 0 to 7.
	Verbosity int
	// MaxVerbosity caps the verbosity that a CR's annotation may ask for.
	MaxVerbosity int
	// RefuseSops refuses spec keys that control community.sops, where it is installed.
	RefuseSops bool
}

// Engine runs the role or playbook of one watch. The fields are set once, before the first
// run.
type Engine struct {
	content.EngineDefaults

	Watch watches.Watch
	// ContentDigest is Digest.
	ContentDigest string
	// Version is that of the content.
	Version  content.Version
	Defaults Defaults
	Runner   Runner
	// Jobs executes the runs; nil: Runner does. Runner does not implement run.Executor, because encoding all job events would slow it down.
	Jobs run.Executor
	// Observers get the job events of the runs. The controller tells them of start and end.
	Observers []Observer
}

// work is the input for a run of a CR. Content labels its own objects, and only a run shows whether
// it would change anything.
type work struct {
	content.WorkDefaults

	engine     *Engine
	uid        string
	finalizing bool
	settings   settings
	variables  extravars.Variables
	// attempt and resumable are those of a run in a Job.
	attempt   run.Attempt
	resumable bool
}

// Prepare reads the CR's annotations and builds its variables. If either is invalid, it
// returns why the CR is refused. A finalizer run is not refused for an invalid annotation.
func (e *Engine) Prepare(ctx context.Context, r content.Request) (content.Work, *content.Outcome) {
	w := &work{engine: e, uid: string(r.Object.GetUID()), finalizing: r.Finalizing}
	var err error
	if w.settings, err = e.settingsOf(r.Object); err != nil && !r.Finalizing {
		return w, content.Refusal(content.ReasonInvalidAnnotation, err)
	}
	if w.variables, err = e.Variables(r); err != nil {
		return w, content.Refusal(content.ReasonInvalidSpec, err)
	}
	if e.Jobs != nil {
		w.attempt = w.attemptOf(r)
		w.resumable = e.Jobs.IsResumable(ctx, w.uid, w.attempt)
	}
	return w, nil
}

// Variables returns the variables that a run for the CR has.
func (e *Engine) Variables(r content.Request) (extravars.Variables, error) {
	return extravars.Build(r.Object.Object, e.variableOptions(r))
}

func (e *Engine) variableOptions(r content.Request) extravars.Options {
	options := extravars.Options{
		GVK:        e.Watch.GVK,
		SnakeCase:  e.Watch.SnakeCaseParameters,
		MarkUnsafe: e.Watch.MarkUnsafe,
		Values:     r.Values,
		Vars:       e.Watch.Vars,
		Overrides:  r.Overrides,
		Finalizing: r.Finalizing,
		RefuseSops: e.Defaults.RefuseSops,
	}
	if r.Finalizing {
		options.FinalizerVars = e.Watch.Finalizer.Vars
	}
	return options
}

// Abandon returns the remains that are known without a run: only the content knows which objects it
// would have removed.
func (w *work) Abandon(context.Context, content.Job) string {
	return "the finalizer's content did not succeed, so objects in other namespaces and data outside of the cluster may remain. Kubernetes deletes children with an owner reference together with the resource"
}

// Run runs the content and passes its events to the observers.
func (w *work) Run(ctx context.Context, job content.Job) content.Result {
	if dropped := w.variables.Dropped; len(dropped) > 0 {
		logr.FromContextOrDiscard(ctx).Info("spec keys are not passed to Ansible, because it sets variables of these names itself; content can read them in the _spec variable",
			"keys", strings.Join(dropped, ", "))
	}
	vars, err := w.variables.Encode()
	if err != nil {
		return content.Result{Outcome: *content.Refusal(content.ReasonRunnerCrashed, fmt.Errorf("encode the variables: %w", err))}
	}
	spec, observe := w.spec(job, vars), func(event jobevent.Event) {
		if event.Kind == jobevent.TaskStart {
			job.Working(event.TaskName())
		}
		for _, o := range w.engine.Observers {
			o.JobEvent(job.Run, event)
		}
	}
	if w.engine.Jobs != nil {
		return w.runInJob(ctx, job, spec, observe)
	}
	ran := w.engine.Runner.Run(ctx, spec, observe)
	return w.result(ran.Outcome, ran.Summary, ran.Start())
}

// result returns the result of a run that was started in this way.
func (w *work) result(outcome content.Outcome, summary jobevent.Summary, start string) content.Result {
	if outcome.Verdict == content.Succeeded {
		outcome.Message = "Ansible-runner exited successfully" // The base image says so. Scripts look for it.
	}
	return content.Result{
		Outcome: outcome, Version: w.engine.Version, RequeueAfter: summary.RequeueAfter, Counts: Counts(summary), Account: summary.Account(start),
	}
}

func (w *work) spec(job content.Job, vars []byte) runner.Spec {
	watch := &w.engine.Watch
	what := watch.Content
	if w.finalizing {
		what = watch.Finalizer.Content
	}
	return runner.Spec{
		UID:          w.uid,
		Watch:        job.Run.Watch.String(),
		CR:           job.Run.Object,
		Resource:     path.Join(job.Run.Watch.Group, job.Run.Watch.Version, job.Run.Watch.Kind, job.Run.Object),
		ID:           job.Run.ID,
		Role:         what.Role,
		RolesPath:    what.RolesPath,
		Playbook:     what.Playbook,
		ExtraVars:    vars,
		Kubeconfig:   job.Kubeconfig,
		Cold:         !watch.Warm,
		Verbosity:    w.settings.verbosity,
		Timeout:      watch.Timeout,
		MaxArtifacts: w.settings.maxArtifacts,
	}
}

// Digest implements content.Engine.
func (e *Engine) Digest() string { return e.ContentDigest }

// Remove deletes the Job of the CR, and the files that runs left on disk, also before the watch had
// executor: job.
func (e *Engine) Remove(uid string) error {
	if e.Jobs == nil {
		return e.Runner.Remove(uid)
	}
	return errors.Join(e.Jobs.Remove(uid), e.Runner.Remove(uid))
}

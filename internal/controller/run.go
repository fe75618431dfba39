package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/extravars"
	"github.com/ensign-operator/ensign/internal/jobevent"
	"github.com/ensign-operator/ensign/internal/runner"
	"github.com/ensign-operator/ensign/internal/status"
)

// prepare reads the CR's annotations and builds its variables. It is false when
// they cannot be built; then nothing runs and nothing is retried until the
// CR changes. A finalizer run is never refused for what the CR says.
func (r *Reconciler) prepare(ctx context.Context, a *attempt) bool {
	var err error
	a.settings, _ = r.settingsOf(a.cr) // What does not parse counts at a deletion alone: see decide.
	a.variables, err = extravars.Build(a.cr.Object, r.variableOptions(a))
	if err != nil {
		return a.refuse(ctx, status.ReasonInvalidSpec, err)
	}
	if dropped := a.variables.Dropped; len(dropped) > 0 {
		log.FromContext(ctx).Info("spec keys are not passed to Ansible, which has its own value for them; they stay readable in the _spec variable",
			"keys", strings.Join(dropped, ", "))
	}
	return true
}

func (r *Reconciler) variableOptions(a *attempt) extravars.Options {
	options := extravars.Options{
		GVK:        r.Watch.GVK,
		SnakeCase:  r.Watch.SnakeCaseParameters,
		MarkUnsafe: r.Watch.MarkUnsafe,
		Vars:       r.Watch.Vars,
		Finalizing: a.finalizing(),
		RefuseSops: r.Defaults.RefuseSops,
	}
	if a.finalizing() {
		options.FinalizerVars = r.Watch.Finalizer.Vars
	}
	return options
}

// run runs the content and sets the attempt's verdict. ctx is the attempt's,
// and runCtx ends with the run's right to go on.
func (r *Reconciler) run(ctx, runCtx context.Context, a *attempt) error {
	runCtx, cancel := context.WithCancelCause(runCtx)
	defer cancel(nil)
	if !r.memories.running(a.request.NamespacedName, cancel) {
		return errGone
	}
	defer r.memories.ended(a.request.NamespacedName)
	switch { // It would be ended at once.
	case r.Runs.Stopped():
		return errStopped
	case runCtx.Err() != nil:
		return context.Cause(runCtx)
	}

	vars, err := a.variables.Encode()
	if err != nil {
		return fmt.Errorf("encode the variables: %w", err)
	}
	kubeconfig, revoke, err := r.Access.Grant(a.cr)
	if err != nil {
		return fmt.Errorf("open the API to the run: %w", err)
	}
	defer revoke()
	if err := r.writeInterim(ctx, a, status.Started(a.cr.GetGeneration(), a.again())); err != nil {
		return err
	}
	if !r.leads() {
		return errFenced
	}
	at := &progress{}
	stop := r.showProgress(ctx, a, at)
	result := r.launch(runCtx, a, r.spec(a, vars, kubeconfig), at)
	stop()
	if !r.leads() {
		return errFenced // It was ended, and is for the next leader to judge.
	}
	if context.Cause(runCtx) == errGone { //nolint:errorlint // A cause is compared by identity: it is set by memories.lost only.
		return errGone
	}
	a.conclude(verdict{outcome: result.Outcome, summary: result.Summary, period: a.settings.period, digest: a.digest})
	return nil
}

func (r *Reconciler) spec(a *attempt, vars, kubeconfig []byte) runner.Spec {
	content := r.Watch.Content
	if a.finalizing() {
		content = r.Watch.Finalizer.Content
	}
	return runner.Spec{
		UID:          string(a.cr.GetUID()),
		Watch:        r.Watch.GVK.String(),
		CR:           strings.TrimPrefix(a.request.String(), "/"),
		ID:           string(uuid.NewUUID()),
		Role:         content.Role,
		RolesPath:    content.RolesPath,
		Playbook:     content.Playbook,
		ExtraVars:    vars,
		Kubeconfig:   kubeconfig,
		Cold:         !r.Watch.Warm,
		Verbosity:    a.settings.verbosity,
		Timeout:      r.Watch.Timeout,
		MaxArtifacts: a.settings.maxArtifacts,
	}
}

// named is the CR's name as observers are told it.
func named(req reconcile.Request) string { return strings.TrimPrefix(req.String(), "/") }

// launch runs the spec in front of the observers.
func (r *Reconciler) launch(ctx context.Context, a *attempt, spec runner.Spec, at *progress) runner.Result {
	run := jobevent.Run{
		ID:         spec.ID,
		Watch:      spec.Watch,
		Object:     spec.CR,
		Generation: a.cr.GetGeneration(),
		Trigger:    r.trigger(a),
		Finalizer:  a.finalizing(),
	}
	for _, o := range r.Observers {
		o.RunStarted(run)
	}
	started := r.Clock.Now()
	result := r.Runner.Run(ctx, spec, func(event jobevent.Event) {
		at.observe(event, r.Clock.Now())
		for _, o := range r.Observers {
			o.JobEvent(run, event)
		}
	})
	elapsed := r.Clock.Since(started)
	run.Warm = result.Warm
	for _, o := range r.Observers {
		o.RunEnded(run, result.Outcome, result.Summary, elapsed)
	}
	return result
}

// backoff counts the failures in a row of an edition and gives the pause
// that follows.
func (r *Reconciler) backoff(a *attempt) time.Duration {
	m, v := a.memory, a.verdict
	if m.edition != v.edition {
		m.edition, m.failures = v.edition, 0
	}
	if v.outcome.Verdict != jobevent.Failed {
		m.failures = 0
		return 0
	}
	m.failures++
	return backoffAfter(m.failures, r.Defaults.MaxBackoff)
}

// removeDirectory deletes the directory of a CR that is gone. A failure is for
// the log only: nothing of the CR is left that could be retried.
func (r *Reconciler) removeDirectory(ctx context.Context, uid string) {
	if err := r.Runner.Remove(uid); err != nil {
		log.FromContext(ctx).Error(err, "could not remove the run directory", "uid", uid)
	}
}

package controller

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/controller/status"
)

// prepare reads the CR's annotations and builds its variables. Where one of them refuses
// the CR, nothing runs until it changes, and no slot is needed to say so. A finalizer run
// is never refused for what the CR says.
func (r *Reconciler) prepare(a *attempt) {
	var err error
	if a.settings, err = r.settingsOf(a.cr); err != nil && !a.finalizing() {
		a.refuse(status.ReasonInvalidAnnotation, err)
		return
	}
	if a.variables, err = extravars.Build(a.cr.Object, r.variableOptions(a)); err != nil {
		a.refuse(status.ReasonInvalidSpec, err)
	}
}

func (a *attempt) refuse(reason jobevent.Reason, why error) {
	a.step, a.refusal = refuse, &jobevent.Outcome{Verdict: jobevent.Failed, Reason: reason, Message: why.Error()}
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
	if !r.states.running(a.heard, a.request.NamespacedName, a.cr.GetUID(), cancel) {
		return nil
	}
	switch { // It would be ended at once.
	case r.Runs.Stopped():
		return errStopped
	case runCtx.Err() != nil:
		return context.Cause(runCtx)
	}
	if dropped := a.variables.Dropped; len(dropped) > 0 {
		log.FromContext(ctx).Info("spec keys are not passed to Ansible, which has its own value for them; they stay readable in the _spec variable",
			"keys", strings.Join(dropped, ", "))
	}
	vars, err := a.variables.Encode()
	if err != nil {
		return fmt.Errorf("encode the variables: %w", err)
	}
	if a.digest == "" {
		a.digest = r.digestWith(runCtx, a)
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
	// What makes the CR dirty from here on is news to this run. And where the run comes to
	// no verdict, nothing has run.
	r.states.update(a.request.NamespacedName, func(st *state) { st.version, st.last, st.dirty = a.version, nil, "" })
	at := &progress{}
	stop := r.showProgress(ctx, a, at)
	result := r.launch(runCtx, a, r.spec(a, vars, kubeconfig), at)
	stop()
	if !r.leads() {
		return errFenced // It was ended, and is for the next leader to judge.
	}
	if context.Cause(runCtx) == errGone { //nolint:errorlint // A cause is compared by identity: the handler sets it.
		return errGone
	}
	r.conclude(a, verdict{outcome: result.Outcome, summary: result.Summary, period: a.settings.period, digest: a.digest})
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
		CR:           named(a.request),
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
	started := r.Clock.Now()
	run := jobevent.Run{
		ID:         spec.ID,
		Watch:      spec.Watch,
		Object:     spec.CR,
		Generation: a.cr.GetGeneration(),
		Trigger:    a.cause(started),
		Finalizer:  a.finalizing(),
	}
	for _, o := range r.Observers {
		o.RunStarted(run)
	}
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

// removeDirectory deletes the directory of a CR that is gone. A failure is for
// the log only: nothing of the CR is left that could be retried.
func (r *Reconciler) removeDirectory(ctx context.Context, uid string) {
	if err := r.Runner.Remove(uid); err != nil {
		log.FromContext(ctx).Error(err, "could not remove the run directory", "uid", uid)
	}
}

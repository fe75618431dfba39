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

// prepare reads the CR's annotations and builds its variables. If either is invalid, the
// CR is refused: nothing runs until it changes, and no slot is needed. A finalizer run is
// not refused for an invalid annotation.
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

// run runs the content and concludes the attempt. runCtx ends when the run must end; ctx
// is that of the attempt, whose writes go on then.
func (r *Reconciler) run(ctx, runCtx context.Context, a *attempt) error {
	runCtx, cancel := context.WithCancelCause(runCtx)
	defer cancel(nil)
	if !r.states.beginRun(a.readCtx, a.request.NamespacedName, a.cr.GetUID(), cancel) {
		return nil
	}
	switch { // The run would be ended at once.
	case r.Attempts.Stopped():
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
	if err := r.writeInterim(ctx, a, status.Started(a.cr.GetGeneration(), a.seenBefore())); err != nil {
		return err
	}
	if !r.leads() {
		return errFenced
	}
	// An event from here on may tell of what this run does not see, so it makes the CR dirty
	// again. If the run comes to no conclusion, last stays nil and content runs again.
	r.states.update(a.request.NamespacedName, func(st *state) { st.version, st.last, st.dirty = a.version, nil, "" })
	at := &progress{}
	stop := r.showProgress(ctx, a, at)
	result := r.launch(runCtx, a, r.spec(a, vars, kubeconfig), at)
	stop()
	if !r.leads() {
		return errFenced // The run was ended, and the next leader repeats it.
	}
	if context.Cause(runCtx) == errGone { //nolint:errorlint // A cause is compared by identity: the handler sets it.
		return errGone
	}
	r.conclude(a, conclusion{outcome: result.Outcome, summary: result.Summary, period: a.settings.period, digest: a.digest})
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

// named returns the CR's name as observers get it: "namespace/name", or "name".
func named(req reconcile.Request) string { return strings.TrimPrefix(req.String(), "/") }

// launch runs the spec and passes its events to the observers.
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

// removeDirectory deletes the run directory of a CR that is gone. A failure is only
// logged: the sweeper tries again.
func (r *Reconciler) removeDirectory(ctx context.Context, uid string) {
	if err := r.Runner.Remove(uid); err != nil {
		log.FromContext(ctx).Error(err, "could not remove the run directory", "uid", uid)
	}
}

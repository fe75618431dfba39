// Package engine makes a Helm chart a kind of content that the controller can run: CR →
// values → the state of its release → an order to chart-exec, or a repair → what the status
// shows.
//
// It does not decide when something runs, or write status.
package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/release"
	"github.com/ensign-operator/ensign/internal/chart/runner"
	"github.com/ensign-operator/ensign/internal/chart/values"
	"github.com/ensign-operator/ensign/internal/content"
	"github.com/ensign-operator/ensign/internal/watches"
)

// Runner carries out orders and keeps a directory for each CR.
type Runner interface {
	Run(ctx context.Context, spec runner.Spec) content.Outcome
	Remove(uid string) error
}

// Observer watches runs. Its methods must not block for long.
type Observer interface {
	Started(run content.Run)
	Ended(run content.Run, outcome content.Outcome, elapsed time.Duration)
	Forget(watch, object string)
}

// Engine keeps the releases of one watch. New makes it; the other fields are set once.
type Engine struct {
	Watch    watches.Watch
	Runner   Runner
	Observer Observer
	// Mapper finds the resources of kinds.
	Mapper meta.RESTMapper
	// Recorder gets an Event for each value of overrideValues before an installation or
	// upgrade; nil: none are made. SuppressOverrides keeps the values out of them.
	Recorder          events.EventRecorder
	SuppressOverrides bool

	chart     string // its name
	overrides []watches.Override
}

// New returns the engine of a watch. The error is about its chart or its overrideValues.
func New(watch watches.Watch, r Runner, o Observer, mapper meta.RESTMapper) (*Engine, error) {
	overrides, err := values.Overrides(watch.Chart.Overrides)
	if err != nil {
		return nil, fmt.Errorf("the watch of %s: %w", watch.GVK.GroupKind(), err)
	}
	name, err := values.Name(watch.Chart)
	if err != nil {
		return nil, fmt.Errorf("the watch of %s: %w", watch.GVK.GroupKind(), err)
	}
	return &Engine{Watch: watch, Runner: r, Observer: o, Mapper: mapper, chart: name, overrides: overrides}, nil
}

// work is a release as its CR wants it.
type work struct {
	engine     *Engine
	cr         *unstructured.Unstructured
	finalizing bool
	// values are nil if the work finalizes, or if the chart cannot be loaded: then fault says why.
	values   *values.Values
	fault    error
	settings settings
}

// settings are what a CR's annotations say.
type settings struct {
	upgradeForce, rollbackForce, uninstallWait bool
	// disableHooks and descriptions are those of each action.
	disableHooks map[order.Action]bool
	descriptions map[order.Action]string
}

// Prepare reads the CR's annotations and makes the chart's values of its spec. A finalizer
// run needs neither.
func (e *Engine) Prepare(cr *unstructured.Unstructured, finalizing bool) (content.Work, *content.Outcome) {
	w := &work{engine: e, cr: cr, finalizing: finalizing}
	var err error
	if w.settings, err = e.readSettings(cr.GetAnnotations()); err != nil && !finalizing {
		return w, content.Refusal(content.ReasonInvalidAnnotation, err)
	}
	if finalizing {
		return w, nil
	}
	spec, _, _ := unstructured.NestedMap(cr.Object, "spec")
	w.values, err = values.Build(e.Watch.Chart, e.overrides, spec)
	switch {
	case errors.Is(err, values.ErrChart):
		w.fault = err // Not the CR's: the next run may find the chart mended.
	case err != nil:
		return w, content.Refusal(content.ReasonInvalidSpec, errors.New(short(err.Error())))
	}
	return w, nil
}

func (e *Engine) readSettings(annotations map[string]string) (s settings, err error) {
	s = settings{disableHooks: map[order.Action]bool{}, descriptions: map[order.Action]string{}}
	var errs []error
	flag := func(name string) bool {
		text, given := annotations[watches.ChartAnnotations+name]
		value, err := strconv.ParseBool(text)
		if given && err != nil {
			errs = append(errs, fmt.Errorf("annotation %s%s: %s is neither true nor false", watches.ChartAnnotations, name, watches.Quoted(text)))
		}
		return value
	}
	s.upgradeForce, s.rollbackForce, s.uninstallWait = flag("upgrade-force"), flag("rollback-force"), flag("uninstall-wait")
	for _, action := range []order.Action{order.Install, order.Upgrade, order.Uninstall} {
		s.disableHooks[action] = flag(string(action) + "-disable-hooks")
		s.descriptions[action] = annotations[watches.ChartAnnotations+string(action)+"-description"]
	}
	return s, errors.Join(errs...)
}

// Settled reports whether the release is as the CR wants it and nothing has drifted.
func (w *work) Settled(ctx context.Context, job content.Job) (content.Result, bool) {
	if w.finalizing || w.fault != nil {
		return content.Result{}, false
	}
	found, err := w.look(ctx, job)
	if err != nil || found.state != release.InSync {
		return content.Result{}, false // Run meets the same error and reports it.
	}
	return deployed(found.last), true
}

// Abandon returns that the release stays, and why it could not be removed as far as the status
// says it.
func (w *work) Abandon(context.Context, content.Job) string {
	left := fmt.Sprintf("the release %q and its objects may still be there", w.cr.GetName())
	conditions, _, _ := unstructured.NestedSlice(w.cr.Object, "status", "conditions")
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		if message, _ := condition["message"].(string); condition["type"] == "Failure" && message != "" {
			return left + ": " + message
		}
	}
	return left
}

// Run brings the release to where the CR wants it, or removes it.
func (w *work) Run(ctx context.Context, job content.Job) content.Result {
	started := time.Now()
	w.engine.Observer.Started(job.Run)
	result := w.run(ctx, job)
	w.engine.Observer.Ended(job.Run, result.Outcome, time.Since(started))
	return result
}

func (w *work) run(ctx context.Context, job content.Job) content.Result {
	if w.fault != nil {
		return irreconcilable(ctx, w.fault)
	}
	found, err := w.look(ctx, job)
	if err != nil {
		return irreconcilable(ctx, err)
	}
	log := logr.FromContextOrDiscard(ctx).WithValues("release", w.cr.GetName())
	switch {
	case w.finalizing:
		return w.uninstall(ctx, job, found)
	case found.state == release.InSync:
		return deployed(found.last)
	case found.state == release.Foreign:
		return irreconcilable(ctx, fmt.Errorf("duplicate release name: the release %q in this namespace is of the chart %q", w.cr.GetName(), found.last.Chart.Name()))
	case found.state == release.Drifted:
		return w.repair(ctx, found)
	}
	w.tellOverrides()
	outcome := w.carryOut(ctx, job, found.action, found.unlock)
	if outcome.Verdict != content.Succeeded {
		return failed(outcome, found.action)
	}
	if found, err = w.look(ctx, job); err != nil {
		return irreconcilable(ctx, err)
	}
	if found.last == nil || found.last.Info.Status.String() != "deployed" {
		return irreconcilable(ctx, errors.New("the release is not there after a run that succeeded"))
	}
	log.Info(done(found.last), "revision", found.last.Version)
	return deployed(found.last)
}

func done(last *release.Release) string {
	if last.Version == 1 {
		return "Installed release"
	}
	return "Upgraded release"
}

// Remove deletes what runs of the CR left on disk.
func (e *Engine) Remove(uid string) error { return e.Runner.Remove(uid) }

// Forget drops all data of a CR that is gone.
func (e *Engine) Forget(watch, object string) { e.Observer.Forget(watch, object) }

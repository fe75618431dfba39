// Package engine makes a Helm chart a kind of content that the controller can run: CR → values →
// the state of its release → an order to chart-exec, or a repair → its result in the status.
//
// It does not decide when something runs, or write status.
package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/ensign-operator/ensign/internal/chart/ledger"
	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/release"
	"github.com/ensign-operator/ensign/internal/chart/seal"
	"github.com/ensign-operator/ensign/internal/chart/values"
	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Runner carries out orders and keeps a directory for each CR.
type Runner interface {
	// Execute is a run.Program for the runs that runner.Spec.Portable returns.
	Execute(ctx context.Context, spec run.Spec, emit func(event []byte)) run.Result
	Remove(uid string) error
	// Evaluate is a values.Evaluate.
	Evaluate(texts []string) ([]order.Evaluated, error)
}

// Engine keeps the releases of one watch. New makes it; the other fields are set once.
type Engine struct {
	Watch  watches.Watch
	Runner Runner
	// Executor executes the orders that change the cluster. New sets it to Runner's Execute. A release is looked
	// at, and its drift repaired, in this process.
	Executor run.Executor
	// Mapper finds the resources of kinds.
	Mapper meta.RESTMapper
	// Recorder gets an Event for each value of overrideValues before an installation or
	// upgrade; nil: none are made. SuppressOverrides keeps the values out of them.
	Recorder          events.EventRecorder
	SuppressOverrides bool
	// Informers show whether anything has changed since a comparison; nil: this is not known.
	Informers Informers

	keys      Keys
	ledger    *ledger.Store
	values    *values.Source
	overrides []watches.Override
	memories  memories
	// believes is true if unsealed records count: then nothing is changed.
	believes bool
	now      func() time.Time
}

// Keys returns the keys with which the records of releases are sealed.
type Keys func(ctx context.Context) (seal.Keys, error)

// New returns the engine of a watch. The error is about its chart or its overrideValues.
func New(watch watches.Watch, r Runner, mapper meta.RESTMapper, keys Keys, l *ledger.Store) (*Engine, error) {
	overrides, err := values.Overrides(watch.Chart.Overrides, r.Evaluate)
	if err != nil {
		return nil, fmt.Errorf("the watch of %s: %w", watch.GVK.GroupKind(), err)
	}
	source, err := values.NewSource(watch.Chart, overrides)
	if err != nil {
		return nil, fmt.Errorf("the watch of %s: %w", watch.GVK.GroupKind(), err)
	}
	return &Engine{Watch: watch, Runner: r, Executor: run.Program(r.Execute), Mapper: mapper, keys: keys, ledger: l, values: source, overrides: overrides, now: time.Now}, nil
}

// work is a release as its CR wants it.
type work struct {
	content.WorkDefaults

	engine     *Engine
	memory     *memory
	cr         *unstructured.Unstructured
	finalizing bool
	// gone is true if the CR was deleted without its finalizer's success.
	gone bool
	// requested is true if a user asked for the run: the chart is rendered again.
	requested bool
	// namespace and name are the release's.
	namespace, name string
	// moved says that the CR's status names another release. It counts only if the ledger knows none.
	moved error
	// uninstalled is true once chart-exec has uninstalled the release.
	uninstalled bool
	// seal says for which CR the release's records are sealed; its keys are set by site.
	seal order.Seal
	// values are nil if the work finalizes, or if the chart cannot be loaded: then fault is the error.
	values   *values.Values
	fault    error
	settings settings
	// looked is the state that Settled found; nil if it found none.
	looked *found

	valueSources
	execution execution
}

// settings are the settings in a CR's annotations.
type settings struct {
	upgradeForce, rollbackForce, uninstallWait bool
	// disableHooks and descriptions are those of each action.
	disableHooks map[order.Action]bool
	descriptions map[order.Action]string
}

// Prepare reads the CR's annotations, finds out where its release is, and makes the chart's values
// of its spec. A finalizer run is never refused.
func (e *Engine) Prepare(ctx context.Context, r content.Request) (content.Work, *content.Outcome) {
	cr := r.Object
	w := &work{engine: e, memory: e.memories.of(cr.GetUID()), cr: cr, finalizing: r.Finalizing, gone: r.Gone, requested: r.Requested, seal: order.Seal{Owner: ownerOf(cr)}}
	var err error
	w.settings, err = e.readSettings(cr.GetAnnotations())
	if r.Finalizing {
		w.namespace, w.name = e.releaseToRemove(cr)
		w.sources, _ = e.Watch.Chart.ValuesSourcesOf(cr.Object) // Its Secrets are masked at a deletion too.
		w.findEarlier(ctx, r)
		return w, nil
	}
	if err != nil {
		return w, content.Refusal(content.ReasonInvalidAnnotation, err)
	}
	w.namespace, w.name, err = e.Watch.Chart.ReleaseOf(cr.Object)
	if moved, ok := errors.AsType[*watches.MovedError](err); ok {
		w.moved = moved
		w.namespace, w.name, err = e.Watch.Chart.WantedRelease(cr.Object)
	}
	if err != nil {
		return w, content.Refusal(content.ReasonInvalidSpec, errors.New(short(errors.Join(w.moved, err).Error())))
	}
	err = w.prepareValues(r)
	switch {
	case errors.Is(err, values.ErrChart):
		w.fault = err // Not the CR's: the chart may be fixed before the next run.
	case err != nil:
		return w, content.Refusal(content.ReasonInvalidSpec, errors.New(short(err.Error())))
	}
	w.findEarlier(ctx, r)
	return w, w.refusedBefore()
}

// releaseToRemove returns the namespace and name of the release of a CR that is being deleted. It is the
// existing one if the spec names another one by now. Both are "" for a CR that cannot have one, for
// example because Helm does not accept its name.
func (e *Engine) releaseToRemove(cr *unstructured.Unstructured) (namespace, name string) {
	namespace, name, err := e.Watch.Chart.ReleaseOf(cr.Object)
	if moved, ok := errors.AsType[*watches.MovedError](err); ok {
		return moved.Namespace, moved.Name
	}
	return namespace, name // "" with any other error.
}

func ownerOf(cr *unstructured.Unstructured) order.Owner {
	kind := cr.GroupVersionKind()
	return order.Owner{Group: kind.Group, Kind: kind.Kind, Namespace: cr.GetNamespace(), Name: cr.GetName(), UID: string(cr.GetUID())}
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
	if w.fault != nil || w.name == "" || w.execution.earlier {
		return content.Result{}, false
	}
	found, err := w.look(ctx, job)
	if lacks, ok := errors.AsType[valuesError](err); ok {
		return w.hide(w.waiting(ctx, lacks)), true
	}
	if err != nil {
		return content.Result{}, false // Run meets the same error and reports it.
	}
	w.looked = &found
	switch {
	case w.finalizing:
		return w.goneSoon(ctx, found)
	case found.State != release.InSync || w.requested || found.records.Misstated(found.history.Revisions):
		return content.Result{}, false
	}
	result := w.hide(w.deployed(found))
	w.remember(found, result)
	return result, true
}

// Run installs, upgrades, repairs or removes the release.
func (w *work) Run(ctx context.Context, job content.Job) content.Result {
	result, over := w.resume(ctx, job)
	if !over {
		result = w.run(ctx, job)
	}
	result = w.hide(result)
	result.Detached, result.Account = w.execution.detached, w.execution.account
	if w.values != nil {
		result.Version = w.values.ChartVersion()
	}
	return result
}

// place finds the release to delete. over is true if nothing is left to do.
func (w *work) place(ctx context.Context) (result content.Result, over bool) {
	switch {
	case w.fault != nil:
		return irreconcilable(ctx, w.fault), true
	case w.name != "":
		return result, false
	}
	entry, err := w.locate(ctx)
	switch {
	case err != nil:
		return irreconcilable(ctx, err), true
	case entry.Name == "":
		return w.removed(ctx), true
	}
	return result, false
}

// lookAndRestate looks at the release, and corrects states of its records that other clients have changed, or
// that Helm could not write: Helm ignores an error when it sets the former revision to superseded.
func (w *work) lookAndRestate(ctx context.Context, job content.Job) (found, error) {
	found, err := w.lookOnce(ctx, job)
	if err == nil && (found.State == release.InSync || found.State == release.Drifted) {
		err = found.records.Restate(ctx, found.history.Revisions)
	}
	return found, err
}

func (w *work) run(ctx context.Context, job content.Job) content.Result {
	if result, over := w.place(ctx); over {
		return result
	}
	found, err := w.lookAndRestate(ctx, job)
	if lacks, ok := errors.AsType[valuesError](err); ok {
		return w.waiting(ctx, lacks)
	}
	if err != nil {
		return irreconcilable(ctx, err)
	}
	switch {
	case w.finalizing:
		return w.finalize(ctx, job, found)
	case w.requested && !w.execution.resumed && (found.State == release.InSync || found.State == release.Drifted):
		return w.renew(ctx, job, found)
	case found.State == release.InSync:
		if w.execution.resumed {
			w.log(ctx).Info(done(found.last()), "revision", found.last().Version)
		}
		return w.deployed(found)
	case found.State == release.Foreign:
		return irreconcilable(ctx, w.duplicate(found))
	case found.State == release.Drifted:
		return w.repair(ctx, found)
	default:
		return w.deploy(ctx, job, found)
	}
}

// renew upgrades the release if its chart renders other objects than in the last revision, although
// chart and values are the same: templates see the API server's capabilities, and look objects up.
func (w *work) renew(ctx context.Context, job content.Job, before found) content.Result {
	o := w.newOrder(order.Upgrade, before.Decision)
	o.IfChanged = true
	if outcome := w.execute(ctx, job, before, o); outcome.Verdict != content.Succeeded {
		w.rememberRefusal(outcome)
		return w.attempted(failed(outcome, order.Upgrade))
	}
	after, err := w.lookAndRestate(ctx, job)
	switch {
	case err != nil:
		return irreconcilable(ctx, err)
	case after.State == release.Drifted:
		return w.repair(ctx, after)
	case after.State != release.InSync:
		return irreconcilable(ctx, fmt.Errorf("the state of the release is %s although Helm reported success", after.State))
	}
	if after.last().Version != before.last().Version {
		w.log(ctx).Info(done(after.last()), "revision", after.last().Version)
	}
	result := w.hide(w.deployed(after))
	w.remember(after, result)
	return result
}

func (w *work) deploy(ctx context.Context, job content.Job, found found) content.Result {
	w.recordOverrides()
	o := w.newOrder(found.Action, found.Decision)
	if found.State == release.Lost {
		if err := w.findBase(ctx, found, &o); err != nil {
			return irreconcilable(ctx, err)
		}
	}
	outcome := w.execute(ctx, job, found, o)
	if outcome.Verdict != content.Succeeded {
		return w.unsuccessful(outcome, found.Action)
	}
	found, err := w.lookAndRestate(ctx, job)
	if err != nil {
		return irreconcilable(ctx, err)
	}
	last := found.last()
	if last == nil || last.Info.Status.String() != "deployed" {
		return irreconcilable(ctx, errors.New("the release has no record with the status deployed although Helm reported success"))
	}
	w.log(ctx).Info(done(last), "revision", last.Version)
	result := w.hide(w.deployed(found))
	if found.State == release.InSync {
		w.remember(found, result)
	}
	return result
}

func (w *work) unsuccessful(outcome content.Outcome, action order.Action) content.Result {
	if action == order.Uninstall {
		return failed(outcome, action)
	}
	w.rememberRefusal(outcome)
	result := w.attempted(failed(outcome, action))
	result.WaitingForObject = len(w.sources) > 0 // One of them may be the cause.
	return result
}

func done(last *release.Release) string {
	if release.Installed(last) {
		return "Installed release"
	}
	return "Upgraded release"
}

// Remove deletes the files that runs of the CR left on disk, and forgets its release.
func (e *Engine) Remove(uid string) error {
	e.memories.forget(types.UID(uid))
	e.ledger.Forget(uid)
	return errors.Join(e.Executor.Remove(uid), e.Runner.Remove(uid)) // A manager may have files of before its runs execute in Jobs.
}

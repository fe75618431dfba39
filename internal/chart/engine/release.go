package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ensign-operator/ensign/internal/chart/drift"
	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/release"
	"github.com/ensign-operator/ensign/internal/chart/runner"
	"github.com/ensign-operator/ensign/internal/content"
	"github.com/ensign-operator/ensign/internal/watches"
)

// found is how the release of a CR stands.
type found struct {
	state  release.State
	action order.Action
	unlock bool
	// last is the last revision; nil if there is none.
	last    *release.Release
	drifted []drift.Object
}

// look reads the release and, if it is in sync, compares its objects. It changes nothing. A
// drift that is only warned of leaves the release in sync.
func (w *work) look(ctx context.Context, job content.Job) (found, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(job.Kubeconfig)
	if err != nil {
		return found{}, fmt.Errorf("use the kubeconfig of the run: %w", err)
	}
	config.QPS = -1
	history, last, err := release.Read(ctx, config, w.cr.GetNamespace(), w.cr.GetName())
	if err != nil {
		return found{}, err
	}
	f := found{last: last}
	if w.finalizing {
		return f, nil
	}
	f.state, f.action, f.unlock = release.Decide(history, w.values.Chart, w.values.Digest)
	watch := w.engine.Watch.Chart
	if f.state != release.InSync || watch.Drift == watches.DriftOff {
		return f, nil
	}
	if f.drifted, err = w.drifted(ctx, config, last); err != nil || len(f.drifted) == 0 {
		return f, err
	}
	if watch.Drift == watches.DriftWarn {
		logr.FromContextOrDiscard(ctx).Info("WARNING: objects of the release were changed by others, and are left so", "release", w.cr.GetName(), "objects", names(f.drifted))
		return f, nil
	}
	f.state = release.Drifted
	return f, nil
}

func (w *work) drifted(ctx context.Context, config *rest.Config, last *release.Release) ([]drift.Object, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("use the kubeconfig of the run: %w", err)
	}
	d := drift.Detector{Client: client, Mapper: w.engine.Mapper, Name: last.Name, Namespace: last.Namespace, Ignore: w.engine.Watch.Chart.DriftIgnore}
	return d.Find(ctx, last.Manifest)
}

func names(objects []drift.Object) string {
	var all []string
	for _, object := range objects {
		all = append(all, object.Name)
	}
	return strings.Join(all, ", ")
}

// repair brings back the objects that have drifted.
func (w *work) repair(ctx context.Context, f found) content.Result {
	if err := drift.Repair(ctx, f.drifted); err != nil {
		return irreconcilable(ctx, err)
	}
	logr.FromContextOrDiscard(ctx).Info("Repaired release", "release", w.cr.GetName(), "objects", names(f.drifted))
	return deployed(f.last)
}

// uninstall removes the release. The release of another chart, which the CR only has the name
// of, is left.
func (w *work) uninstall(ctx context.Context, job content.Job, f found) content.Result {
	log := logr.FromContextOrDiscard(ctx).WithValues("release", w.cr.GetName())
	if f.last != nil && (f.last.Chart == nil || f.last.Chart.Name() == w.engine.chart) {
		if w.settings.uninstallWait {
			log.Info("Uninstall wait")
			log.Info("Waiting until all resources are deleted")
		}
		if outcome := w.carryOut(ctx, job, order.Uninstall, false); outcome.Verdict != content.Succeeded {
			return failed(outcome, order.Uninstall)
		}
		log.Info("Uninstalled release")
	}
	log.Info("Removing finalizer")
	return uninstalled()
}

// waits returns how long Helm waits for hooks and objects: less than the run's timeout, so
// that Helm can say what it waited for in vain, and roll back. Helm takes 0 for 30 s.
func waits(timeout time.Duration) time.Duration {
	const forever = 10_000 * time.Hour
	if timeout == 0 {
		return forever
	}
	return timeout / 5 * 4
}

// carryOut has chart-exec carry out an action.
func (w *work) carryOut(ctx context.Context, job content.Job, action order.Action, unlock bool) content.Outcome {
	watch, chart := w.engine.Watch, w.engine.Watch.Chart
	kind := action
	if kind == order.Reinstall {
		kind = order.Install
	}
	o := order.Order{
		Action: action, Unlock: unlock, Chart: chart.Path, Name: w.cr.GetName(), Namespace: w.cr.GetNamespace(),
		Settings: order.Settings{
			MaxHistory: chart.MaxHistory, Wait: chart.Wait, Timeout: waits(watch.Timeout), Adopt: chart.Adopt,
			SkipCRDs: chart.CRDs == watches.CRDsSkip, ReplaceCRDs: chart.CRDs == watches.CRDsReplace,
			DisableHooks: w.settings.disableHooks[kind], Description: w.settings.descriptions[kind],
			Force: w.settings.upgradeForce, RollbackForce: w.settings.rollbackForce,
		},
	}
	if action == order.Uninstall {
		o.Wait = w.settings.uninstallWait
	} else {
		o.Values, o.Digest = w.values.Values, w.values.Digest
		o.Templates = order.Templates{All: chart.AllTemplates, Trusted: w.values.Trusted}
	}
	return w.engine.Runner.Run(ctx, runner.Spec{
		UID: string(w.cr.GetUID()), ID: job.Run.ID, Kubeconfig: job.Kubeconfig, Order: o, Timeout: watch.Timeout, Working: job.Working,
	})
}

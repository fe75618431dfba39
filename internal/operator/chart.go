package operator

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime/schema"

	chart "github.com/ensign-operator/ensign/internal/chart/engine"
	"github.com/ensign-operator/ensign/internal/chart/runner"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/internal/kubeapi/children"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// chartExec is the name of the program that runs Helm's actions. It is beside the manager's.
const chartExec = "chart-exec"

// chartBackend has the watches of charts.
type chartBackend struct {
	manager  *Manager
	runner   *runner.Runner
	sealKeys chart.Keys
	all      *components
}

func (*chartBackend) claims(w Watch) bool { return isChart(w.Watch) }
func (*chartBackend) keepsServer() bool   { return false }
func (*chartBackend) close() error        { return nil }

// isChart reports whether the content of the watch is a chart.
func isChart(w watches.Watch) bool { return w.Chart != nil }

// prepare finds the program that runs Helm's actions.
func (c *chartBackend) prepare(_ context.Context, list []Watch, at runDirs) error {
	made, err := newChartRunner(c.manager.options, at)
	if err != nil {
		return fmt.Errorf("the watch of %s: %w", list[0].GVK.GroupKind(), err)
	}
	made.Ready = c.manager.lease.Check
	c.runner = made
	return nil
}

// newChartRunner returns the runner that starts the program chart-exec beside this one.
func newChartRunner(o config.Options, at runDirs) (*runner.Runner, error) {
	binary := filepath.Join(filepath.Dir(o.Executable), chartExec)
	if _, err := os.Stat(binary); err != nil {
		return nil, fmt.Errorf("there is a chart, which needs the program %s beside the manager's: %w", chartExec, err)
	}
	return &runner.Runner{Root: at.root, Reaper: at.reaper, Binary: binary, Env: o.Env.List(), DropEnv: o.DropEnv}, nil
}

// connect finds the keys of releases.
func (c *chartBackend) connect(all *components) (err error) {
	c.all = all
	c.sealKeys, err = newSealKeys(all.Manager)
	return err
}

// engine returns the engine for the releases of the watch.
func (c *chartBackend) engine(w Watch) (content.Engine, error) {
	var runs chart.Runner = chartRunner{c.runner}
	if w.Job != nil {
		remote, err := c.all.inJobsOf(w.Watch, wire.Assignment{Settings: jobSettings(c.manager.options, false)})
		if err != nil {
			return nil, err
		}
		runs = chartJobs{chartRunner{c.runner}, remote}
	}
	engine, err := chart.New(w.Watch, runs, c.all.GetRESTMapper(), c.sealKeys, c.all.ledger)
	if err != nil {
		return nil, err
	}
	engine.Recorder, engine.SuppressOverrides = c.all.events, c.all.options.SuppressOverrideValues
	if w.WatchDependentResources {
		engine.Informers = followed{c.all.related.Children}
	}
	return engine, nil
}

// chartRunner adds to a runner the removal of run directories.
type chartRunner struct{ *runner.Runner }

// Remove implements chart.Runner.
func (r chartRunner) Remove(uid string) error { return r.Root.Remove(uid) }

// followed tells of the objects that are followed because releases have them.
type followed struct{ children *children.Children }

// Object implements chart.Informers.
func (f followed) Object(kind string, resource schema.GroupVersionResource, namespace, name string) (chart.Known, bool) {
	known, live := f.children.Known(kind, resource, namespace, name)
	return chart.Known(known), live
}

// Series implements chart.Informers.
func (f followed) Series(kind string, resource schema.GroupVersionResource, namespace, base string) (map[string]chart.Known, bool) {
	known, live := f.children.KnownSeries(kind, resource, namespace, base)
	all := make(map[string]chart.Known, len(known))
	for name, one := range known {
		all[name] = chart.Known(one)
	}
	return all, live
}

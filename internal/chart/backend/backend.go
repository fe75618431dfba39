// Package backend makes the parts by which one manager runs charts: the runner of chart-exec, the ledger
// of releases and the keys of their seals. Package operator calls it.
package backend

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"

	"github.com/ensign-operator/ensign/internal/chart/engine"
	"github.com/ensign-operator/ensign/internal/chart/ledger"
	"github.com/ensign-operator/ensign/internal/chart/runner"
	"github.com/ensign-operator/ensign/internal/chart/seal"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/internal/watches"
)

// chartExec is the name of the program that runs Helm's actions. It is beside the manager's.
const chartExec = "chart-exec"

// Backend runs charts. Its exported fields are set before Prepare.
type Backend struct {
	Options config.Options
	// Ready is called before each run.
	Ready func(ctx context.Context) error

	host   Host
	runner *runner.Runner
	keys   engine.Keys
}

// Host has the parts of a manager that a Backend needs.
type Host struct {
	Records *Records
	// Mapper finds the resources of kinds, and Recorder makes Events about CRs.
	Mapper   meta.RESTMapper
	Recorder events.EventRecorder
	// Informers know the objects of watches with watchDependentResources.
	Informers engine.Informers
}

// Prepare finds the program that runs Helm's actions. It contacts nothing.
func (b *Backend) Prepare(list []watches.Watch, at process.Dirs) error {
	made, err := newRunner(b.Options, at)
	if err != nil {
		return fmt.Errorf("the watch of %s: %w", list[0].GVK.GroupKind(), err)
	}
	made.Ready = b.Ready
	b.runner = made
	return nil
}

// newRunner returns the runner that starts the program chart-exec beside this one.
func newRunner(o config.Options, at process.Dirs) (*runner.Runner, error) {
	binary := filepath.Join(filepath.Dir(o.Executable), chartExec)
	if _, err := os.Stat(binary); err != nil {
		return nil, fmt.Errorf("there is a chart, which needs the program %s beside the manager's: %w", chartExec, err)
	}
	return &runner.Runner{Root: at.Root, Reaper: at.Reaper, Binary: binary, Env: o.Env.List(), DropEnv: o.DropEnv}, nil
}

// Connect finds the keys of releases.
func (b *Backend) Connect(h Host) (err error) {
	b.host = h
	b.keys, err = h.Records.keys(b.Options.Logger)
	return err
}

// Engine returns the engine for the releases of the watch. jobs executes the orders; nil: this process does.
func (b *Backend) Engine(w watches.Watch, jobs run.Executor) (*engine.Engine, error) {
	made, err := engine.New(w, local{b.runner}, b.host.Mapper, b.keys, b.host.Records.ledger)
	if err != nil {
		return nil, err
	}
	if jobs != nil {
		made.Executor = jobs
	}
	made.Recorder, made.SuppressOverrides = b.host.Recorder, b.Options.SuppressOverrideValues
	if w.WatchDependentResources {
		made.Informers = b.host.Informers
	}
	return made, nil
}

// NewEngine returns an engine without a manager. Like a manager that knows no namespace of its own, it
// keeps neither ledger nor keys.
func NewEngine(o config.Options, w watches.Watch, mapper meta.RESTMapper, at process.Dirs) (*engine.Engine, error) {
	runs, err := newRunner(o, at)
	if err != nil {
		return nil, err
	}
	return engine.New(w, local{runs}, mapper, seal.Temporary(), &ledger.Store{})
}

// NewAgent returns the runner that carries out one order in the pod of a Job, by Execute.
func NewAgent(o config.Options, at process.Dirs) (*runner.Runner, error) { return newRunner(o, at) }

// local adds to a runner the removal of run directories.
type local struct{ *runner.Runner }

// Remove implements engine.Runner.
func (r local) Remove(uid string) error { return r.Root.Remove(uid) }

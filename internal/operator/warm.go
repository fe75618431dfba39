package operator

import (
	"path/filepath"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/ansible/warm"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/observe/metrics"
)

const (
	// standinName is the name of the stand-in program, which is beside the manager's.
	standinName = "warm-exec"
	// moduleProgram is the program in onRefused that means a module.
	moduleProgram = "python"
	// warmDirName is the directory of the servers in the run directory.
	warmDirName = ".warm"
)

// warmPool is the pool of servers for warm runs. It counts the programs that were started
// cold. With a nil warmPool, all runs are cold.
type warmPool struct {
	pool       *warm.Pool
	fallbacks  atomic.Pointer[metrics.Fallbacks] // nil until registerMetrics
	lastReason atomic.Pointer[string]            // why the last cold run was cold
}

// newWarmPool sets the runner's launcher for warm runs. If that fails, it logs the error and
// returns nil: cold runs do the same, only slower.
func newWarmPool(o config.Options, env pyenv.Env, r *runner.Runner) *warmPool {
	if !o.Warm {
		return nil
	}
	w := &warmPool{}
	var err error
	w.pool, err = warm.NewPool(filepath.Join(r.Root.Path(), warmDirName), warm.Programs{
		Standin: filepath.Join(filepath.Dir(o.Executable), standinName),
		Python:  env.Python,
	}, r.Reaper, warm.Options{Limit: o.WarmServers, Logger: o.Logger.WithName("warm"), Refused: w.onRefused})
	if err != nil {
		o.Logger.Error(err, "all runs are cold: servers for warm ones can't be started")
		return nil
	}
	r.Launcher = w
	return w
}

// Prepare implements runner.Launcher.
func (w *warmPool) Prepare(env []string) { w.pool.Prepare(env) }

// Ended implements runner.Launcher.
func (w *warmPool) Ended(env []string) bool { return w.pool.Ended(env) }

// Launch implements runner.Launcher.
func (w *warmPool) Launch(env []string) (program, why string) {
	program, why = w.pool.Launch(env)
	if program == "" {
		w.onRefused("ansible-runner", why)
	}
	return program, why
}

func (w *warmPool) onRefused(program, reason string) {
	if program != moduleProgram { // A run with a cold module is still a warm run.
		w.lastReason.Store(&reason)
	}
	if fallbacks := w.fallbacks.Load(); fallbacks != nil {
		fallbacks.Count(program, warm.WithoutDetail(reason))
	}
}

// coldReason returns why the last cold run was cold.
func (w *warmPool) coldReason() string {
	if w == nil {
		return "failed"
	}
	if last := w.lastReason.Load(); last != nil {
		return *last
	}
	return "unknown"
}

// registerMetrics registers the counter of fallbacks.
func (w *warmPool) registerMetrics(registry prometheus.Registerer) error {
	if w == nil {
		return nil
	}
	fallbacks, err := metrics.NewFallbacks(registry)
	w.fallbacks.Store(fallbacks)
	return err
}

func (w *warmPool) close() error {
	if w == nil {
		return nil
	}
	return w.pool.Close()
}

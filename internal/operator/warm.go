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
	// standinName is the stand-in, which lies beside the manager.
	standinName = "warm-exec"
	// moduleProgram is what refused calls the interpreter of a module.
	moduleProgram = "python"
	// warmName is the directory of the servers, in the run directory.
	warmName = ".warm"
)

// warmPool is the pool of servers for warm runs with what counts what it can't do.
type warmPool struct {
	pool      *warm.Pool
	fallbacks atomic.Pointer[metrics.Fallbacks] // nil before the manager is put together
	last      atomic.Pointer[string]            // why a run was cold the last time
}

// newWarm gives the runner a launcher. Without one runs do the same, but slower, so
// that nothing that goes wrong here keeps the manager from its work.
func newWarm(o config.Options, env pyenv.Env, r *runner.Runner) *warmPool {
	if !o.Warm {
		return nil
	}
	w := &warmPool{}
	var err error
	w.pool, err = warm.NewPool(filepath.Join(r.Root.Path(), warmName), warm.Programs{
		Standin: filepath.Join(filepath.Dir(o.Executable), standinName),
		Python:  env.Python,
	}, r.Reaper, warm.Options{Limit: o.WarmServers, Logger: o.Logger.WithName("warm"), Refused: w.refused})
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
		w.refused("ansible-runner", why)
	}
	return program, why
}

func (w *warmPool) refused(program, reason string) {
	if program != moduleProgram { // A run is warm also where a module of it is cold.
		w.last.Store(&reason)
	}
	if fallbacks := w.fallbacks.Load(); fallbacks != nil {
		fallbacks.Count(program, warm.WithoutDetail(reason))
	}
}

// reason is why the last run that is cold is so.
func (w *warmPool) reason() string {
	if w == nil {
		return "failed"
	}
	if last := w.last.Load(); last != nil {
		return *last
	}
	return "unknown"
}

// count begins to count.
func (w *warmPool) count(registry prometheus.Registerer) error {
	if w == nil {
		return nil
	}
	fallbacks, err := metrics.NewFallbacks(registry)
	w.fallbacks.Store(fallbacks)
	return err
}

func (w *warmPool) end() error {
	if w == nil {
		return nil
	}
	return w.pool.Close()
}

package backend

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

// warmDirName is the directory of the server in the run directory.
const warmDirName = ".warm"

// warmServer is the server for warm runs, with its metrics. With a nil warmServer, all runs are
// cold.
type warmServer struct {
	server     *warm.Server
	counts     *metrics.Warm
	lastReason atomic.Pointer[string] // why the last cold run was cold
}

// newWarmServer sets the runner's launcher for warm runs of content at these paths. If that fails,
// it logs the error and returns nil: cold runs do the same, only slower.
func newWarmServer(o config.Options, env pyenv.Env, r *runner.Runner, content []string) *warmServer {
	if o.Cold {
		return nil
	}
	w := &warmServer{counts: metrics.NewWarm()}
	var err error
	w.server, err = warm.New(filepath.Join(r.Root.Path(), warmDirName), env.Python, r.Program, r.Reaper, warm.Options{
		Logger: o.Logger.WithName("warm"), Content: content, OnCold: w.onCold, OnOff: w.counts.Off,
		OnModule: func(reason string) { w.counts.Module(warm.WithoutDetail(reason)) },
	})
	if err != nil {
		o.Logger.Error(err, "could not start the server for warm runs, so all runs are cold and take seconds longer")
		return nil
	}
	r.Launcher = w.server
	return w
}

func (w *warmServer) onCold(reason string) {
	w.lastReason.Store(&reason)
	w.counts.Fallback(warm.WithoutDetail(reason))
}

// coldReason returns why the last cold run was cold.
func (w *warmServer) coldReason() string {
	if w == nil {
		return "failed"
	}
	if last := w.lastReason.Load(); last != nil {
		return *last
	}
	return "unknown"
}

// registerMetrics registers the counters.
func (w *warmServer) registerMetrics(registry prometheus.Registerer) error {
	if w == nil {
		return nil
	}
	return w.counts.Register(registry)
}

func (w *warmServer) close() error {
	if w == nil {
		return nil
	}
	return w.server.Close()
}

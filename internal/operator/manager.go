package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	ansible "github.com/ensign-operator/ensign/internal/ansible/backend"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/hooks"
	"github.com/ensign-operator/ensign/internal/leadership"
	"github.com/ensign-operator/ensign/internal/observe/probes"
	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/pkg/options"
)

// defaultWatchesFile is where Ansible's settings are looked for if no file of watches is read.
const defaultWatchesFile = "watches.yaml"

// Watch is a kind and the content that reconciles it.
type Watch struct {
	watches.Watch

	// Engine runs the content; nil: that of the kind of content which the watch names.
	Engine content.Engine
	// Hooks are the functions and values of a Go program.
	Hooks hooks.Hooks
	// Sources are further sources of events.
	Sources []controller.Source
}

// Manager is a ctrl.Manager that also runs the content of watches. New makes it; LoadWatches and
// AddWatch give it watches; Start composes everything that they need, and runs it.
type Manager struct {
	ctrl.Manager

	options  config.Options // With defaults; its logger is the author's.
	election ctrl.Options
	// client reaches the API server behind the fence, without a limit of its own.
	client *rest.Config
	// namespaces are those that are watched; nil: all.
	namespaces []string
	// shard selects the CRs that are this manager's; nil: all.
	shard      labels.Selector
	lease      leadership.Lease
	libraryLog libraryLog
	probes     probes.Probes
	runs       *controller.Attempts
	// runDirs end the processes of runs; nil before Start.
	runDirs atomic.Pointer[process.Dirs]
	python  *ansible.Python
	grace   time.Duration

	mu      sync.Mutex
	watches []Watch
	started bool
}

// New returns a Manager that contacts nothing before Start. See ensign.NewManager.
func New(cfg *rest.Config, o ctrl.Options, e options.Options) (*Manager, error) {
	if cfg == nil {
		return nil, errors.New("a manager needs a rest.Config")
	}
	e, err := e.WithDefaults()
	if err = errors.Join(err, e.Check(), leadership.CheckElection(o), config.Of(e, logr.Discard()).CheckEnvironment()); err != nil {
		return nil, err
	}
	if e.Registerer == nil {
		e.Registerer = ctrlmetrics.Registry
	}
	shard, err := leadership.ParseShard(o, e)
	if err != nil {
		return nil, err
	}
	o = withDefaults(o)
	library, log := splitLog(o.Logger)
	m := &Manager{options: config.Of(e, log), election: o, namespaces: namespacesOf(o.Cache), shard: shard, libraryLog: library, runs: controller.NewAttempts(), grace: *o.GracefulShutdownTimeout}
	m.options.WatchesFile, m.python = defaultWatchesFile, &ansible.Python{}
	m.probes = probes.New(log, o.LivenessEndpointName, o.ReadinessEndpointName)
	o.LeaderElectionID = leadership.ShardLease(o.LeaderElectionID, shard)
	if m.lease, err = leadership.NewLease(cfg, o, leadership.LossHandlers{StopRuns: m.runs.Stop, EndProcesses: m.endProcesses}); err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = cmp.Or(cfg.UserAgent, "ensign/"+cmp.Or(e.Version, "dev"))
	cfg = m.lease.FencedConfig(cfg)
	if m.Manager, err = ctrl.NewManager(cfg, m.lease.ElectionOptions(library.Logger, o)); err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	m.lease.SetRecorder(m.Manager)
	m.client = rest.CopyConfig(cfg)
	m.client.QPS = -1 // The API server has priority and fairness; a limit here would only delay results.
	return m, nil
}

// withDefaults returns controller-runtime's options with those that the manager itself needs.
func withDefaults(o ctrl.Options) ctrl.Options {
	if o.Logger.GetSink() == nil {
		o.Logger = ctrl.Log
	}
	o.LivenessEndpointName = cmp.Or(o.LivenessEndpointName, "/healthz")
	o.ReadinessEndpointName = cmp.Or(o.ReadinessEndpointName, "/readyz")
	grace := defaultStopTimeout
	if o.GracefulShutdownTimeout != nil {
		grace = *o.GracefulShutdownTimeout
	}
	if grace >= 0 { // A value below 0 means no limit.
		grace = max(grace, minStopTimeout)
	}
	o.GracefulShutdownTimeout = &grace
	return leadership.WithLeaseTimes(o)
}

// namespacesOf returns the namespaces to which the author's cache is limited; nil means all.
func namespacesOf(o cache.Options) []string {
	var names []string
	for name := range o.DefaultNamespaces {
		if name == cache.AllNamespaces {
			return nil
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// endProcesses ends the processes of all runs.
func (m *Manager) endProcesses(grace time.Duration) {
	if dirs := m.runDirs.Load(); dirs != nil {
		dirs.Reaper.EndOwn(grace)
	}
}

// AddHealthzCheck adds a check of the liveness probe.
func (m *Manager) AddHealthzCheck(name string, check healthz.Checker) error {
	return m.addCheck(m.probes.Healthz, name, check)
}

// AddReadyzCheck adds a check of the readiness probe.
func (m *Manager) AddReadyzCheck(name string, check healthz.Checker) error {
	return m.addCheck(m.probes.Readyz, name, check)
}

func (m *Manager) addCheck(p *probes.Probe, name string, check healthz.Checker) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.started {
		return fmt.Errorf("add the check %q: the manager has started", name)
	}
	p.Checks[name] = check
	return nil
}

// LoadWatches reads the file at path, which is relative to Options.Dir. It finds the content of
// the watches, and for roles of collections needs the Python environment. It returns all faults
// of the file at once.
func (m *Manager) LoadWatches(ctx context.Context, path string) ([]watches.Watch, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.options.WatchesFile = path // An ansible.cfg beside it counts.
	return loadContent(ctx, m.options, m.python)
}

// MakeWatch returns the watch of the fields that a Go program has: see watches.Make.
func (m *Manager) MakeWatch(what string, fields []watches.Field, custom *watches.ContentKind) (Watch, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	needsPython := slices.ContainsFunc(fields, namesRole)
	search, err := contentSearch(context.Background(), m.options, m.python, needsPython)
	if err != nil {
		return Watch{}, err
	}
	watch, err := watches.Make(what, fields, custom, search)
	if err != nil {
		return Watch{}, err
	}
	list := []watches.Watch{watch}
	if err := m.options.Env.Override(list); err != nil {
		return Watch{}, err
	}
	warnOfDangers(m.options.Logger, list)
	return Watch{Watch: list[0]}, nil
}

// namesRole reports whether the field, or that of a finalizer, names a role, which may be in one of
// Python's collections.
func namesRole(f watches.Field) bool {
	var finalizer struct {
		Role string `json:"role"`
	}
	text, err := json.Marshal(f.Value)
	return f.Name == "role" || f.Name == "finalizer" && err == nil && json.Unmarshal(text, &finalizer) == nil && finalizer.Role != ""
}

// AddWatch adds a watch, before Start. A kind can be watched once.
func (m *Manager) AddWatch(w Watch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.started {
		return fmt.Errorf("watch %s: the manager has started", w.GVK)
	}
	kind := w.GVK.GroupKind()
	if slices.ContainsFunc(m.watches, func(other Watch) bool { return other.GVK.GroupKind() == kind }) {
		return fmt.Errorf("watch %s: the kind is watched already, and its objects are the same in every version", w.GVK)
	}
	m.watches = append(m.watches, w)
	return nil
}

// Start runs the manager until ctx ends. Before it changes anything at the API server, it returns
// an error if content, or the Python environment that it needs, is invalid. It returns an error if
// the lease is lost, and nil after an orderly stop, also if ctx ends during the start.
func (m *Manager) Start(ctx context.Context) error {
	list, err := m.begin()
	if err != nil {
		return err
	}
	c, err := m.compose(ctx, list)
	defer c.close()
	if ctx.Err() != nil {
		m.options.Logger.Info("stopped during the start")
		return nil
	}
	if err != nil {
		return err
	}
	c.logStart()
	return c.stopper().runUntilStopped(ctx, m.Manager)
}

// begin returns the watches, after which none can be added.
func (m *Manager) begin() ([]Watch, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.started {
		return nil, errors.New("the manager has started already")
	}
	m.started = true
	return m.watches, nil
}

// recordName returns the name of an object in which the manager keeps something.
func (m *Manager) recordName(what string) string {
	return cmp.Or(m.election.LeaderElectionID, "ensign") + "-" + what
}

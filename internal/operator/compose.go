package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	charts "github.com/ensign-operator/ensign/internal/chart/backend"
	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/controller/sweeper"
	jobs "github.com/ensign-operator/ensign/internal/jobs/backend"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
	"github.com/ensign-operator/ensign/internal/observe/metrics"
	"github.com/ensign-operator/ensign/internal/observe/traces"
	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/internal/runapi"
	"github.com/ensign-operator/ensign/pkg/content"
)

// ErrUnreachable is the error of an API server that does not answer.
var ErrUnreachable = errors.New("reach the API server")

// connectTimeout bounds the first request to the API server.
const connectTimeout = 10 * time.Second

// components are the parts that a manager has beside controller-runtime's: all that its watches
// need.
type components struct {
	*Manager

	list     []Watch
	dirs     process.Dirs
	backends backends
	slots    *slots.Slots
	// jobSlots are those of runs in Jobs.
	jobSlots *slots.Slots
	// jobs is nil until a watch whose runs execute in Jobs needs it.
	jobs *jobs.Backend
	// userMetrics takes the metrics that roles post; nil: they are refused.
	userMetrics http.Handler
	// leftovers are the places where runs leave something.
	leftovers *leftovers

	served   *discovery.DiscoveryClient
	related  *runapi.Related
	crWrites runapi.CRWrites
	proxy    *proxy.Proxy
	cache    cache.Cache
	writer   client.Client
	locks    controller.RunLocks
	events   events.EventRecorder
	// records are those of the releases of charts.
	records *charts.Records
	// undo releases the resources that compose took, the last first.
	undo []func()

	registerer *registrations
	counters   *metrics.Metrics
	observers  []content.Observer
	traces     *traces.Traces // nil: runs are not traced
	// supervisors are those of the watches. They are complete before the manager leads.
	supervisors map[schema.GroupVersionKind]*controller.Supervisor
}

// compose makes everything that the watches need and adds it to the manager. None of it runs yet,
// and nothing is changed at the API server. The caller closes the components, also after an error.
func (m *Manager) compose(ctx context.Context, list []Watch) (*components, error) {
	c := &components{
		Manager: m, list: list, registerer: &registrations{Registerer: m.options.Registerer}, supervisors: map[schema.GroupVersionKind]*controller.Supervisor{},
	}
	for _, step := range []func(context.Context) error{
		c.prepare, c.reachServer, c.lookForNamespaces, c.observeRuns, c.followObjects, c.serveRuns, c.readObjects, c.addWatches,
	} {
		if err := step(ctx); err != nil {
			return c, err
		}
	}
	return c, errors.Join(m.stopper().addTo(m.Manager), m.probes.AddTo(m.Manager, m.election.HealthProbeBindAddress), c.serveProfiles())
}

// stopper returns the stopper of the manager.
func (m *Manager) stopper() stopper {
	return stopper{runs: m.runs, fence: m.lease.Fence, release: m.lease.Release, grace: m.grace, log: m.options.Logger, stopping: m.libraryLog.stopping}
}

// prepare takes the run directory and prepares the kinds of content.
func (c *components) prepare(ctx context.Context) (err error) {
	if c.dirs, err = openRunDirs(c.options); err != nil {
		return err
	}
	c.runDirs.Store(&c.dirs)
	c.backends = newBackends(c.Manager, c.list)
	if err := c.backends.prepare(ctx, c.list, c.dirs); err != nil {
		return err
	}
	c.slots = newSlots(c.options, inJobs(c.list, false), c.backends.keepsServer())
	c.jobSlots, c.leftovers = newJobSlots(c.options, c.list), &leftovers{[]sweeper.Directories{c.dirs.Root}}
	return nil
}

// reachServer asks the API server for its version.
func (c *components) reachServer(context.Context) (err error) {
	if err := ReachServer(c.options.Logger, c.client); err != nil {
		return err
	}
	if c.served, err = discovery.NewDiscoveryClientForConfig(c.client); err != nil {
		return fmt.Errorf("prepare discovery: %w", err)
	}
	return nil
}

// ReachServer returns an error, ErrUnreachable, if the API server does not tell its version.
func ReachServer(log logr.Logger, restConfig *rest.Config) error {
	probe := rest.CopyConfig(restConfig)
	probe.Timeout = connectTimeout
	served, err := discovery.NewDiscoveryClientForConfig(probe)
	if err != nil {
		return fmt.Errorf("use the kubeconfig: %w", err)
	}
	version, err := served.ServerVersion()
	if err != nil {
		return fmt.Errorf("%w at %s; check the kubeconfig and that the server runs: %w", ErrUnreachable, restConfig.Host, err)
	}
	log.V(1).Info("connected", "server", restConfig.Host, "version", version.GitVersion)
	return nil
}

func (c *components) logStart() {
	what := []any{"version", c.options.Version, "commit", c.options.Commit, "watches", len(c.list), "maxConcurrentRuns", c.slots.Limit()}
	if len(c.namespaces) > 0 {
		what = append(what, "namespaces", c.namespaces)
	}
	c.options.Logger.Info("starting", what...)
}

// close releases the resources that compose has taken. All runs have ended.
func (c *components) close() {
	for _, undo := range slices.Backward(c.undo) {
		undo()
	}
	c.registerer.unregister()
	if err := errors.Join(c.backends.close(), c.dirs.Close()); err != nil {
		c.options.Logger.Error(err, "could not close the run directory")
	}
}

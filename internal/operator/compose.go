package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/controller/sweeper"
	"github.com/ensign-operator/ensign/internal/fence"
	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
	"github.com/ensign-operator/ensign/internal/observe/eventlog"
	"github.com/ensign-operator/ensign/internal/observe/metrics"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// ErrUnreachable is the error of an API server that does not answer.
var ErrUnreachable = errors.New("reach the API server")

// connectTimeout bounds the first request to the API server.
const connectTimeout = 10 * time.Second

// components are what a manager has beside controller-runtime's: all that its watches need.
type components struct {
	*Manager

	list  []Watch
	place workplace
	wings wings
	slots *slots.Slots

	served   *discovery.DiscoveryClient
	related  *relatedObjects
	crWrites crWrites
	proxy    *proxy.Proxy
	cache    cache.Cache
	writer   client.Client
	events   events.EventRecorder
	// undo gives up what compose took, the last first.
	undo []func()

	registerer *registrations
	counters   *metrics.Metrics
	observers  []content.Observer
}

// compose makes everything that the watches need and adds it to the manager. None of it runs yet,
// and nothing is changed at the API server. The caller closes the components, also after an error.
func (m *Manager) compose(ctx context.Context, list []Watch) (*components, error) {
	c := &components{Manager: m, list: list, registerer: &registrations{Registerer: m.options.Registerer}}
	for _, step := range []func(context.Context) error{
		c.prepare, c.reachServer, c.observeRuns, c.followObjects, c.serveRuns, c.readObjects, c.addWatches,
	} {
		if err := step(ctx); err != nil {
			return c, err
		}
	}
	return c, errors.Join(m.stopper().addTo(m.Manager), m.probes.addTo(m.Manager, m.election.HealthProbeBindAddress))
}

// stopper returns what ends the manager.
func (m *Manager) stopper() stopper {
	return stopper{runs: m.runs, fence: m.lease.fence, release: m.lease.release, grace: m.grace, log: m.options.Logger, stopping: m.libraryLog.stopping}
}

// prepare takes the run directory and prepares the kinds of content.
func (c *components) prepare(ctx context.Context) (err error) {
	if c.place, err = openWorkplace(c.options); err != nil {
		return err
	}
	c.reaper.Store(c.place.reaper)
	c.wings = newWings(c.Manager, c.list)
	if err := c.wings.prepare(ctx, c.list, c.place); err != nil {
		return err
	}
	c.slots = newSlots(c.options, c.list, c.wings.keepsServer())
	return nil
}

func newSlots(o config.Options, list []Watch, warm bool) *slots.Slots {
	memory := config.AvailableMemory(os.DirFS("/"))
	config.WarnIfMemoryTooLow(o.Logger, memory, warm)
	limit := o.MaxConcurrentRuns
	if limit == 0 {
		limit = config.DefaultMaxConcurrentRuns(len(list), memory, warm)
	}
	return slots.New(limit, kindsOf(list)...)
}

// kindsOf returns the watched kinds.
func kindsOf(list []Watch) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for i := range list {
		kinds = append(kinds, list[i].GVK)
	}
	return kinds
}

// plain returns the watches without what Go programs add.
func plain(list []Watch) []watches.Watch {
	var all []watches.Watch
	for i := range list {
		all = append(all, list[i].Watch)
	}
	return all
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

// observeRuns makes the log and the metrics of runs.
func (c *components) observeRuns(context.Context) (err error) {
	if c.counters, err = metrics.New(c.registerer, metrics.Build{Version: c.options.Version, Commit: c.options.Commit}); err != nil {
		return explainRegistered(err)
	}
	c.slots.ObserveWait = c.counters.ObserveWait
	err = errors.Join(
		metrics.RegisterRunDirectory(c.registerer, c.place.root.Bytes),
		c.counters.RegisterSlots(c.slots, c.slots.Limit(), kindsOf(c.list)),
	)
	c.observers = []content.Observer{eventlog.New(logOptions(c.options)), c.counters}
	return err
}

// logOptions returns how the log shows runs. Check has passed.
func logOptions(o config.Options) eventlog.Options {
	level, _ := eventlog.ParseLevel(o.TaskEvents)
	l := eventlog.Options{Logger: o.Logger.WithName("run"), Blocks: o.TaskOutput, JSON: o.TaskOutput == nil, Level: level}
	if screen, ok := o.TaskOutput.(*eventlog.Screen); ok {
		l.Screen, l.Blocks = screen, screen.Out
	}
	return l
}

// followObjects makes and adds what follows the children of CRs, and the objects that they name.
func (c *components) followObjects(context.Context) (err error) {
	c.crWrites = newCRWrites(plain(c.list))
	if c.related, err = newRelatedObjects(c.client, plain(c.list), c.Manager); err != nil {
		return err
	}
	return c.related.addTo(c.Manager, c.counters)
}

// serveRuns makes and adds the API proxy of runs.
func (c *components) serveRuns(ctx context.Context) (err error) {
	c.proxy, err = proxy.New(c.client, proxy.Options{
		Port: c.options.ProxyPort, OpenPort: c.options.ProxyOpenPort, InjectOwnerRef: !c.options.NoOwnerReferences,
		IsConfined: confinement(c.options, plain(c.list)), Fence: c.lease.fence,
		WriteObservers: []access.WriteObserver{c.related, c.crWrites}, Logger: c.options.Logger.WithName("proxy"),
	})
	if err != nil {
		return err
	}
	for _, server := range c.proxy.Servers() {
		err = errors.Join(err, c.addServer(server))
	}
	if err != nil {
		return err
	}
	c.probes.healthz.checks["proxy"], c.probes.readyz.checks["proxy"] = c.proxy.Check, c.proxy.Check
	var end func()
	if c.events, end, err = newRecorder(ctx, c.client, c.GetScheme(), c.options.Logger.WithName("events")); err == nil {
		c.undo = append(c.undo, end)
	}
	return err
}

// addServer adds a server that listens already. Its port is free after close, also if the manager
// never starts to serve there.
func (c *components) addServer(server *manager.Server) error {
	c.undo = append(c.undo, func() { _ = server.Listener.Close() }) // A server that has ended has closed it.
	if err := c.Add(server); err != nil {
		return fmt.Errorf("add the %s: %w", server.Name, err)
	}
	return nil
}

// readObjects makes the cache of the watched kinds, a client that writes, and what removes the run
// directories of CRs that are gone. The author's own cache and client stay as he wants them: this
// cache holds reduced objects.
func (c *components) readObjects(context.Context) (err error) {
	o := cacheOptions(c.namespaces, plain(c.list))
	o.Scheme, o.Mapper, o.HTTPClient = c.GetScheme(), c.GetRESTMapper(), c.GetHTTPClient()
	if c.cache, err = cache.New(c.client, o); err != nil {
		return fmt.Errorf("make the cache of the watched kinds: %w", err)
	}
	if c.writer, err = client.New(c.client, client.Options{Scheme: o.Scheme, Mapper: o.Mapper, HTTPClient: o.HTTPClient}); err != nil {
		return fmt.Errorf("make the client that writes: %w", err)
	}
	if err := c.Add(addedCache{c.cache}); err != nil {
		return fmt.Errorf("add the cache of the watched kinds: %w", err)
	}
	err = c.Add(sweeper.Sweeper{
		Directories: c.place.root, Reader: c.writer, Discovery: c.served, Watches: plain(c.list), Namespaces: c.namespaces, Logger: c.options.Logger.WithName("sweeper"),
	})
	if err != nil {
		return fmt.Errorf("add the sweeper of run directories: %w", err)
	}
	return nil
}

// addedCache is a cache as a manager runs it: among the caches.
type addedCache struct{ cache.Cache }

// GetCache makes a manager take it for one.
func (a addedCache) GetCache() cache.Cache { return a.Cache }

// cacheOptions limits the cache to the namespaces, and its objects to the fields that
// triggers need. The cache holds only watched kinds. The transform is the default one,
// because a transform for a kind needs that kind to be served at the start.
func cacheOptions(namespaces []string, list []watches.Watch) cache.Options {
	options := cache.Options{DefaultTransform: controller.Reducer(list...)}
	for _, namespace := range namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}

// addWatches connects the kinds of content, and adds a Supervisor for each watch.
func (c *components) addWatches(context.Context) error {
	if err := c.wings.connect(c); err != nil {
		return err
	}
	for _, watch := range c.list {
		runs, err := c.wings.engine(watch)
		if err != nil {
			return err
		}
		s := c.supervisor(watch, runs)
		if err := c.Add(s); err != nil {
			return fmt.Errorf("add the watch of %s: %w", watch.GVK, err)
		}
		c.probes.readyz.checks["cache "+watch.GVK.GroupKind().String()] = s.Check
	}
	return nil
}

func (c *components) supervisor(watch Watch, runs content.Engine) *controller.Supervisor {
	o := c.options
	ready := func(gvk schema.GroupVersionKind, ready bool) {
		c.counters.SetWatchReady(gvk, ready)
		c.counters.SetSlowed(gvk, 0) // A new controller knows of none.
	}
	c.counters.InitWatch(watch.GVK)
	concurrent := watch.MaxConcurrentReconciles
	if concurrent == 0 {
		concurrent = o.MaxConcurrentReconciles
	}
	return &controller.Supervisor{
		GVK:                     watch.GVK,
		Cache:                   c.cache,
		Discovery:               c.served,
		OpenAPI:                 openapi3.NewRoot(c.served.OpenAPIV3()).GVSpec,
		MaxConcurrentReconciles: concurrent,
		Sources:                 watch.Sources,
		Logger:                  o.Logger.WithName("controller").WithValues("kind", watch.GVK.Kind),
		Ready:                   ready,
		NewReconciler: func(noStatus bool) *controller.Reconciler {
			return &controller.Reconciler{
				Watch:      watch.Watch,
				Defaults:   defaults(o),
				Client:     c.writer,
				Reader:     c.writer,
				Content:    runs,
				Access:     proxyAccess{c.proxy},
				Related:    c.related,
				Writers:    c.crWrites.writers,
				Meter:      c.counters,
				Observers:  c.observers,
				Recorder:   c.events,
				Attempts:   c.runs,
				Slots:      c.slots,
				Digest:     c.wings.digest(watch),
				Translates: len(watch.Hooks.Translate) > 0,
				Clock:      clock.RealClock{},
				NoStatus:   noStatus,
				Began:      time.Now(),
				Fence:      c.lease.fence.Held,
			}
		},
	}
}

func defaults(o config.Options) controller.Defaults {
	return controller.Defaults{ReconcilePeriod: max(o.ReconcilePeriod, 0), MaxBackoff: o.MaxBackoff}
}

// checkLease is called before each run. The lease may be lost meanwhile.
func (m *Manager) checkLease(context.Context) error {
	if !m.lease.fence.Held() {
		return fence.ErrLost
	}
	return nil
}

func (c *components) logStart() {
	c.options.Logger.Info("starting", "version", c.options.Version, "commit", c.options.Commit, "watches", len(c.list), "maxConcurrentRuns", c.slots.Limit())
}

// close releases what compose has taken. All runs have ended.
func (c *components) close() {
	for _, undo := range slices.Backward(c.undo) {
		undo()
	}
	c.registerer.unregister()
	if err := errors.Join(c.wings.close(), c.place.close()); err != nil {
		c.options.Logger.Error(err, "could not give up the run directory")
	}
}

// confinement returns a function that reports whether the runs of an owner may write only
// in the namespace of their CR.
func confinement(o config.Options, all []watches.Watch) func(access.Owner) bool {
	kinds := map[schema.GroupKind]bool{}
	for i := range all {
		kinds[all[i].GVK.GroupKind()] = o.ConfineToNamespace || all[i].ConfineToNamespace
	}
	return func(owner access.Owner) bool { return kinds[owner.GVK.GroupKind()] }
}

// proxyAccess gives runs access to the API through the proxy.
type proxyAccess struct{ proxy *proxy.Proxy }

// Grant implements controller.Access.
func (o proxyAccess) Grant(cr *unstructured.Unstructured, labels map[string]string) (controller.Grant, error) {
	owner := access.Owner{GVK: cr.GroupVersionKind(), Namespace: cr.GetNamespace(), Name: cr.GetName(), UID: cr.GetUID()}
	lacking := &denials{}
	kubeconfig, revoke, err := o.proxy.GrantSession(access.Session{Owner: owner, Labels: labels, Denied: lacking.add})
	return controller.Grant{Kubeconfig: kubeconfig, Revoke: revoke, Denied: lacking.say}, err
}

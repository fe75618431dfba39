package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/openapi3"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/controller/sweeper"
	"github.com/ensign-operator/ensign/internal/leadership"
	"github.com/ensign-operator/ensign/internal/runapi"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// The needs of watches: the objects that are read and followed, and the parts that reconcile them.

// kindsOf returns the watched kinds.
func kindsOf(list []Watch) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for i := range list {
		kinds = append(kinds, list[i].GVK)
	}
	return kinds
}

// plain returns the watches without the additions of Go programs.
func plain(list []Watch) []watches.Watch {
	var all []watches.Watch
	for i := range list {
		all = append(all, list[i].Watch)
	}
	return all
}

// followObjects makes and adds the parts that follow the children of CRs, and the objects that they
// name.
func (c *components) followObjects(context.Context) (err error) {
	c.crWrites = runapi.NewCRWrites(plain(c.list))
	c.related, err = runapi.NewRelated(runapi.RelatedOptions{
		Client: c.client, Watches: plain(c.list), Namespaces: c.namespaces, RecordNamespace: leadership.Namespace(c.election), RecordName: c.recordName("children"),
		UnusedKindTimeout: c.options.ChildrenUnusedAfter, Logger: c.options.Logger,
	})
	if err != nil {
		return err
	}
	return c.related.AddTo(c.Manager, c.counters)
}

// readObjects makes the cache of the watched kinds, a client that writes, and the sweeper that
// removes the run directories of CRs that are gone. The author's own cache and client stay
// unchanged: this cache holds stripped objects.
func (c *components) readObjects(context.Context) (err error) {
	o := cacheOptions(c.namespaces, plain(c.list))
	o.DefaultLabelSelector = c.shard
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
		Directories: c.leftovers, Reader: c.reader(), Discovery: c.served, Watches: plain(c.list), Namespaces: c.namespaces, Logger: c.options.Logger.WithName("sweeper"),
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
	options := cache.Options{DefaultTransform: controller.StripTransform(list...)}
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
	if err := errors.Join(c.joinOthers(), c.backends.connect(c)); err != nil {
		return err
	}
	for _, watch := range c.list {
		runs, err := c.backends.engine(watch)
		if err != nil {
			return err
		}
		s := c.supervisor(watch, runs)
		c.supervisors[watch.GVK] = s
		if err := c.Add(s); err != nil {
			return fmt.Errorf("add the watch of %s: %w", watch.GVK, err)
		}
		c.probes.Readyz.Checks["cache "+watch.GVK.GroupKind().String()] = s.Check
	}
	return nil
}

// joinOthers takes the manager's place beside others of its operator.
func (c *components) joinOthers() (err error) {
	c.locks, err = leadership.Member{
		Config: c.client, Lease: c.lease, Base: c.election.LeaderElectionID, Namespace: leadership.Namespace(c.election), LockPrefix: c.recordName("run-"), Shard: c.shard,
		Kinds: kindsOf(c.list), Namespaces: c.namespaces, Reader: c.writer, ReportUnmatched: c.counters.SetUnselected, Log: c.options.Logger.WithName("shards"),
	}.AddTo(c.Manager)
	return err
}

// reader returns the reader for live reads of CRs.
func (c *components) reader() client.Reader { return leadership.Reader(c.writer, c.shard) }

func (c *components) supervisor(watch Watch, runs content.Engine) *controller.Supervisor {
	o := c.options
	ready := func(gvk schema.GroupVersionKind, ready bool) {
		c.counters.SetWatchReady(gvk, ready)
		c.counters.SetSlowed(gvk, 0) // A new controller knows of none.
	}
	c.counters.InitWatch(watch.GVK)
	concurrent := watch.MaxConcurrentReconciles
	switch {
	case concurrent != 0:
	case watch.Job != nil: // A worker waits for each of them, and needs nothing for that.
		concurrent = c.jobSlots.Limit()
	default:
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
		Recorded:                c.recorded(watch.Watch),
		NewReconciler: func(noStatus bool) *controller.Reconciler {
			return &controller.Reconciler{
				Watch:      watch.Watch,
				Defaults:   defaults(o),
				Client:     c.writer,
				Reader:     c.reader(),
				Locks:      c.locks,
				Content:    runs,
				Access:     runapi.Access{Proxy: c.proxy, Release: isChart(watch.Watch)},
				Related:    c.related,
				Writers:    c.crWrites.Writers,
				Meter:      c.counters,
				Observers:  c.observers,
				Recorder:   c.events,
				Attempts:   c.runs,
				Slots:      c.slotsOf(watch.Watch),
				Digest:     runs.Digest(),
				Translates: len(watch.Hooks.Translate) > 0,
				Clock:      clock.RealClock{},
				NoStatus:   noStatus,
				Began:      time.Now(),
				Fence:      c.lease.Fence.Held,
			}
		},
	}
}

// recorded returns a function that returns the CRs of which the content of a watch has records; nil if it has none.
func (c *components) recorded(watch watches.Watch) func(context.Context) (map[types.NamespacedName]types.UID, error) {
	if !isChart(watch) {
		return nil
	}
	return func(ctx context.Context) (map[types.NamespacedName]types.UID, error) {
		return c.records.CRs(ctx, watch.GVK.GroupKind())
	}
}

func defaults(o config.Options) controller.Defaults {
	return controller.Defaults{ReconcilePeriod: max(o.ReconcilePeriod, 0), MaxBackoff: o.MaxBackoff, ServiceAccount: o.DefaultServiceAccount}
}

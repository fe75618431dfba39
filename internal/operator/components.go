package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ensign-operator/ensign/internal/ansible/engine"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	chart "github.com/ensign-operator/ensign/internal/chart/engine"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/controller/sweeper"
	"github.com/ensign-operator/ensign/internal/fence"
	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
	"github.com/ensign-operator/ensign/internal/observe/coldruns"
	"github.com/ensign-operator/ensign/internal/observe/eventlog"
	"github.com/ensign-operator/ensign/internal/observe/metrics"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// components are the components of a manager.
type components struct {
	options    config.Options
	manager    manager.Manager
	proxy      *proxy.Proxy
	ansible    ansibleSetup
	runs       *controller.Attempts
	slots      *slots.Slots
	lease      lease
	related    *relatedObjects
	sealKeys   chart.Keys
	crWrites   crWrites
	events     events.EventRecorder
	probes     probes
	libraryLog libraryLog
}

// close releases what setUp has taken.
func (c components) close() {
	if err := c.ansible.close(); err != nil {
		c.options.Logger.Error(err, "could not give up the run directory")
	}
}

// checkReady is called before each run. It checks the Python environment again if that has
// changed since the start. Then it checks the lease, which may be lost meanwhile.
func (c components) checkReady(ctx context.Context) error {
	if err := c.ansible.envChecker.Check(ctx); err != nil {
		return fmt.Errorf("the Python environment has changed since this operator started: %w", err)
	}
	return c.checkLease(ctx)
}

// checkLease is called before each run of a chart.
func (c components) checkLease(context.Context) error {
	if !c.lease.fence.Held() {
		return fence.ErrLost
	}
	return nil
}

// addToManager adds everything to the manager that lives as long as it does.
func (c components) addToManager() error {
	counters, err := metrics.New(ctrlmetrics.Registry, c.options.Build)
	if err != nil {
		return err
	}
	if err := metrics.RegisterRunDirectory(ctrlmetrics.Registry, c.ansible.runner.Root.Bytes); err != nil {
		return err
	}
	if err := c.ansible.warm.registerMetrics(ctrlmetrics.Registry); err != nil {
		return err
	}
	c.slots.ObserveWait = counters.ObserveWait
	if err := counters.RegisterSlots(c.slots, c.slots.Limit(), c.ansible.watchedKinds()); err != nil {
		return err
	}
	taskLog := eventlog.New(eventlog.Options{
		Logger: c.options.Logger.WithName("run"), Blocks: c.options.Blocks, JSON: c.options.JSONLogs, Level: c.options.LogEvents,
		Screen: c.options.Screen,
	})
	if err := errors.Join(c.related.addTo(c.manager, counters), c.addProxy(), c.addUserMetrics()); err != nil {
		return err
	}
	served, err := discovery.NewDiscoveryClientForConfig(c.manager.GetConfig())
	if err != nil {
		return fmt.Errorf("prepare discovery: %w", err)
	}
	if err := c.manager.Add(c.sweeper(served)); err != nil {
		return fmt.Errorf("add the sweeper of run directories: %w", err)
	}
	observers := []engine.Observer{taskLog, counters}
	if c.options.Warm {
		observers = append(observers, c.coldRuns(counters))
	}
	for _, watch := range c.ansible.watches {
		runs, err := c.content(watch, observers)
		if err != nil {
			return err
		}
		s := c.supervisor(watch, runs, counters)
		s.Discovery, s.OpenAPI = served, openapi3.NewRoot(served.OpenAPIV3()).GVSpec
		if err := c.manager.Add(s); err != nil {
			return fmt.Errorf("add the watch of %s: %w", watch.GVK, err)
		}
		c.probes.readyz.checks["cache "+watch.GVK.GroupKind().String()] = s.Check
	}
	return c.probes.addTo(c.manager, c.options.HealthProbeBindAddress)
}

func (c components) coldRuns(counters *metrics.Metrics) *coldruns.Observer {
	o := coldruns.Options{Reason: c.ansible.warm.coldReason, SetCold: counters.SetWatchCold, Logger: c.options.Logger.WithName("warm")}
	for _, watch := range c.ansible.watches {
		if watch.Warm && watch.Chart == nil {
			o.Watches = append(o.Watches, watch.GVK)
		}
	}
	return coldruns.New(o)
}

func (c components) sweeper(served sweeper.Discovery) sweeper.Sweeper {
	return sweeper.Sweeper{
		Directories: c.ansible.runner.Root,
		Reader:      c.manager.GetAPIReader(),
		Discovery:   served,
		Watches:     c.ansible.watches,
		Namespaces:  c.options.Env.Namespaces(),
		Logger:      c.options.Logger.WithName("sweeper"),
	}
}

func (c components) addProxy() error {
	for _, server := range c.proxy.Servers() {
		if err := c.manager.Add(server); err != nil {
			return fmt.Errorf("add the %s: %w", server.Name, err)
		}
	}
	c.probes.healthz.checks["proxy"], c.probes.readyz.checks["proxy"] = c.proxy.Check, c.proxy.Check
	return nil
}

func (c components) supervisor(watch watches.Watch, runs content.Engine, counters *metrics.Metrics) *controller.Supervisor {
	o := c.options
	ready := func(gvk schema.GroupVersionKind, ready bool) {
		counters.SetWatchReady(gvk, ready)
		counters.SetSlowed(gvk, 0) // A new controller knows of none.
	}
	counters.InitWatch(watch.GVK)
	concurrent := watch.MaxConcurrentReconciles
	if concurrent == 0 {
		concurrent = o.MaxConcurrentReconciles
	}
	return &controller.Supervisor{
		GVK:                     watch.GVK,
		Cache:                   c.manager.GetCache(),
		MaxConcurrentReconciles: concurrent,
		Logger:                  o.Logger.WithName("controller").WithValues("kind", watch.GVK.Kind),
		Ready:                   ready,
		NewReconciler: func(noStatus bool) *controller.Reconciler {
			return &controller.Reconciler{
				Watch:    watch,
				Defaults: c.defaults(),
				Client:   c.manager.GetClient(),
				Reader:   c.manager.GetAPIReader(),
				Content:  runs,
				Access:   proxyAccess{c.proxy},
				Related:  c.related,
				Writers:  c.crWrites.writers,
				Meter:    counters,
				Recorder: c.events,
				Attempts: c.runs,
				Slots:    c.slots,
				Digest:   c.ansible.digests[watch.GVK],
				Clock:    clock.RealClock{},
				NoStatus: noStatus,
				Began:    time.Now(),
				Fence:    c.lease.fence.Held,
			}
		},
	}
}

func (c components) defaults() controller.Defaults {
	return controller.Defaults{
		ReconcilePeriod: c.options.ReconcilePeriod,
		MaxBackoff:      c.options.MaxBackoff,
	}
}

// content returns what runs the content of the watch.
func (c components) content(watch watches.Watch, observers []engine.Observer) (content.Engine, error) {
	if watch.Chart != nil {
		return c.chart(watch, observers)
	}
	return &engine.Engine{
		Watch: watch, Version: content.ShortVersion(c.options.Env.OperatorVersion(), c.ansible.digests[watch.GVK]), Runner: controllerRunner{c.ansible.runner}, Observers: observers,
		Defaults: engine.Defaults{Verbosity: c.options.AnsibleVerbosity, MaxVerbosity: c.options.MaxVerbosity, RefuseSops: c.ansible.sops},
	}, nil
}

// controllerRunner adds to a runner the removal of run directories.
type controllerRunner struct{ *runner.Runner }

// Remove implements engine.Runner.
func (r controllerRunner) Remove(uid string) error { return r.Root.Remove(uid) }

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

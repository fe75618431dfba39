package operator

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ensign-operator/ensign/internal/ansible/runner"
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
)

// parts are what a manager is put together from.
type parts struct {
	options config.Options
	manager manager.Manager
	proxy   *proxy.Proxy
	ansible ansible
	runs    *controller.RunGroup
	slots   *slots.Slots
	lease   lease
	related *related
	events  events.EventRecorder
	probes  probes
	// libraries is the log of controller-runtime and client-go.
	libraries libraryLog
}

// close gives up what setUp took.
func (p parts) close() {
	if err := p.ansible.end(); err != nil {
		p.options.Logger.Error(err, "could not give up the run directory")
	}
}

// ready is runner.Runner.Ready: what was proved at the start may have changed, and to
// prove it again takes time, in which the lease can be lost.
func (p parts) ready(ctx context.Context) error {
	if err := p.ansible.proof.Check(ctx); err != nil {
		return fmt.Errorf("the Python environment has changed since this operator started: %w", err)
	}
	if !p.lease.fence.Held() {
		return fence.ErrLost
	}
	return nil
}

// add adds everything long-lived to the manager.
func (p parts) add() error {
	counters, err := metrics.New(ctrlmetrics.Registry, p.options.Build)
	if err != nil {
		return err
	}
	if err := metrics.RegisterRunDirectory(ctrlmetrics.Registry, p.ansible.runner.Root.Bytes); err != nil {
		return err
	}
	if err := p.ansible.warm.count(ctrlmetrics.Registry); err != nil {
		return err
	}
	p.slots.ObserveWait = counters.ObserveWait
	if err := counters.RegisterSlots(p.slots, p.slots.Limit(), p.ansible.names()); err != nil {
		return err
	}
	lines := eventlog.New(eventlog.Options{
		Logger: p.options.Logger.WithName("run"), Blocks: p.options.Blocks, JSON: p.options.JSONLogs, Level: p.options.LogEvents,
	})
	if err := errors.Join(p.related.addTo(p.manager, counters), p.addProxy(), p.addUserMetrics()); err != nil {
		return err
	}
	served, err := discovery.NewDiscoveryClientForConfig(p.manager.GetConfig())
	if err != nil {
		return fmt.Errorf("prepare discovery: %w", err)
	}
	if err := p.manager.Add(p.sweeper(served)); err != nil {
		return fmt.Errorf("add the sweeper of run directories: %w", err)
	}
	observers := []controller.Observer{lines, counters}
	if p.options.Warm {
		observers = append(observers, p.coldRuns(counters))
	}
	for _, watch := range p.ansible.watches {
		s := p.supervisor(watch, observers, counters)
		s.Discovery, s.OpenAPI = served, openapi3.NewRoot(served.OpenAPIV3()).GVSpec
		if err := p.manager.Add(s); err != nil {
			return fmt.Errorf("add the watch of %s: %w", watch.GVK, err)
		}
		p.probes.readyz.checks["cache "+watch.GVK.GroupKind().String()] = s.Check
	}
	return p.probes.addTo(p.manager, p.options.HealthProbeBindAddress)
}

func (p parts) coldRuns(counters *metrics.Metrics) *coldruns.Observer {
	o := coldruns.Options{Reason: p.ansible.warm.reason, SetCold: counters.SetWatchCold, Logger: p.options.Logger.WithName("warm")}
	for _, watch := range p.ansible.watches {
		if watch.Warm {
			o.Watches = append(o.Watches, watch.GVK.String())
		}
	}
	return coldruns.New(o)
}

func (p parts) sweeper(served sweeper.Discovery) sweeper.Sweeper {
	return sweeper.Sweeper{
		Directories: p.ansible.runner.Root,
		Reader:      p.manager.GetAPIReader(),
		Discovery:   served,
		Watches:     p.ansible.watches,
		Namespaces:  p.options.Env.Namespaces(),
		Logger:      p.options.Logger.WithName("sweeper"),
	}
}

func (p parts) addProxy() error {
	for _, server := range p.proxy.Servers() {
		if err := p.manager.Add(server); err != nil {
			return fmt.Errorf("add the %s: %w", server.Name, err)
		}
	}
	p.probes.healthz.checks["proxy"], p.probes.readyz.checks["proxy"] = p.proxy.Check, p.proxy.Check
	return nil
}

func (p parts) supervisor(watch watches.Watch, observers []controller.Observer, counters *metrics.Metrics) *controller.Supervisor {
	o := p.options
	ready := func(gvk schema.GroupVersionKind, ready bool) { counters.SetWatchReady(gvk.String(), ready) }
	counters.InitWatch(watch.GVK.String())
	concurrent := watch.MaxConcurrentReconciles
	if concurrent == 0 {
		concurrent = o.MaxConcurrentReconciles
	}
	return &controller.Supervisor{
		GVK:                     watch.GVK,
		Cache:                   p.manager.GetCache(),
		MaxConcurrentReconciles: concurrent,
		Logger:                  o.Logger.WithName("controller").WithValues("kind", watch.GVK.Kind),
		Ready:                   ready,
		NewReconciler: func(noStatus bool) *controller.Reconciler {
			return &controller.Reconciler{
				Watch:     watch,
				Defaults:  p.defaults(),
				Client:    p.manager.GetClient(),
				Reader:    p.manager.GetAPIReader(),
				Runner:    runs{p.ansible.runner},
				Access:    opener{p.proxy},
				Observers: observers,
				Related:   p.related,
				Recorder:  p.events,
				Runs:      p.runs,
				Slots:     p.slots,
				Digest:    p.ansible.digests[watch.GVK],
				Clock:     clock.RealClock{},
				NoStatus:  noStatus,
				Fence:     p.lease.fence.Held,
			}
		},
	}
}

func (p parts) defaults() controller.Defaults {
	return controller.Defaults{
		ReconcilePeriod: p.options.ReconcilePeriod,
		Verbosity:       p.options.AnsibleVerbosity,
		MaxVerbosity:    p.options.MaxVerbosity,
		MaxBackoff:      p.options.MaxBackoff,
		RefuseSops:      p.ansible.sops,
	}
}

// runs are the runner together with the directories that it works in.
type runs struct{ *runner.Runner }

// Remove implements controller.Runner.
func (r runs) Remove(uid string) error { return r.Root.Remove(uid) }

// confined tells whose runs write in the namespace of their CR only.
func confined(o config.Options, all []watches.Watch) func(access.Owner) bool {
	kinds := map[schema.GroupKind]bool{}
	for i := range all {
		kinds[all[i].GVK.GroupKind()] = o.ConfineToNamespace || all[i].ConfineToNamespace
	}
	return func(owner access.Owner) bool { return kinds[owner.GVK.GroupKind()] }
}

// opener opens the proxy for the runs of a CR.
type opener struct{ proxy *proxy.Proxy }

// Grant implements controller.Access.
func (o opener) Grant(cr *unstructured.Unstructured) ([]byte, func(), error) {
	return o.proxy.Grant(access.Owner{GVK: cr.GroupVersionKind(), Namespace: cr.GetNamespace(), Name: cr.GetName(), UID: cr.GetUID()})
}

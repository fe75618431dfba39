package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ensign-operator/ensign/internal/access"
	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/eventlog"
	"github.com/ensign-operator/ensign/internal/metrics"
	"github.com/ensign-operator/ensign/internal/proxy"
	"github.com/ensign-operator/ensign/internal/runner"
	"github.com/ensign-operator/ensign/internal/slots"
	"github.com/ensign-operator/ensign/internal/watches"
)

// connectTimeout bounds the first request to the API server.
const connectTimeout = 10 * time.Second

// Run runs a manager until ctx ends. Options.Check has seen its settings; what is
// wrong with its watches or Python environment is an error before the API server is contacted. It returns
// nil after an orderly stop, also one while it starts, and an error when the lease
// is lost.
func Run(ctx context.Context, o Options) error {
	p, err := setUp(ctx, o)
	if err == nil {
		defer p.close()
	}
	if ctx.Err() != nil {
		o.Logger.Info("stopped before it began")
		return nil
	}
	if err != nil {
		return err
	}
	o.Logger.Info("starting", "version", o.Build.Version, "commit", o.Build.Commit, "watches", len(p.ansible.watches), "maxConcurrentRuns", p.slots.Limit(),
		"ansibleCore", p.ansible.info.AnsibleCore, "ansibleRunner", p.ansible.info.AnsibleRunner, "python", p.ansible.environment.Python)
	p.ansible.runner.Prepare() // Only now it has the whole environment of runs.
	return stopper{runs: p.runs, fence: p.lease.fence, grace: o.GracefulShutdownTimeout, log: o.Logger}.runUntilStopped(ctx, p.manager)
}

// setUp puts the manager together. Nothing in it is at work yet.
func setUp(ctx context.Context, o Options) (p parts, err error) {
	env := newEnvironment(o.Env)
	o = o.with(env)
	ansible, err := prepareAnsible(ctx, o, env)
	if err != nil {
		return parts{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ansible.owned.end())
		}
	}()
	config, err := connect(o)
	if err != nil {
		return parts{}, err
	}
	p = parts{options: o, ansible: ansible, runs: controller.NewRunGroup(), slots: newSlots(o, ansible)}
	if p.lease, err = newLease(config, o, env, holders{stop: p.runs.Stop, extend: ansible.owned.extend}); err != nil {
		return parts{}, err
	}
	if p.related, err = newRelated(p.lease.behind(config), ansible.watches, o); err != nil {
		return parts{}, err
	}
	if p.reading, err = newReading(p.lease.behind(config), o, ansible.watches); err != nil {
		return parts{}, err
	}
	way := proxy.Options{
		Port: o.ProxyPort, OpenPort: o.ProxyOpenPort, InjectOwnerRef: o.InjectOwnerRef, Confine: confined(o, ansible.watches),
		Fence: p.lease.fence, Followers: []access.Follower{p.related}, Logger: o.Logger.WithName("proxy"),
	}
	p.reading.attach(&way)
	if p.proxy, err = proxy.New(p.lease.behind(config), way); err != nil {
		return parts{}, err
	}
	if p.manager, err = newManager(config, p.lease, ansible.watches, o); err != nil {
		return parts{}, fmt.Errorf("set up the manager: %w", explainBind(err))
	}
	return p, p.add()
}

// close gives up what setUp took.
func (p parts) close() {
	if err := p.ansible.owned.end(); err != nil {
		p.options.Logger.Error(err, "could not give up the run directory")
	}
}

func newSlots(o Options, a ansible) *slots.Slots {
	limit := o.MaxConcurrentRuns
	if limit == 0 {
		limit = defaultRuns(len(a.watches), availableMemory(os.DirFS("/")), a.owned.warm != nil)
	}
	return slots.New(limit, a.names()...)
}

// connect reads the client configuration and asks the API server for its version.
func connect(o Options) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		err = errors.New("none of them names one") // The library would speak of a variable that is not read here.
	}
	if err != nil {
		return nil, fmt.Errorf("find the API server (in a pod, or by --kubeconfig, KUBECONFIG or ~/.kube/config): %w", err)
	}
	config.QPS = -1 // The API server's own priority and fairness decide; a second limit here would only delay results.
	config.UserAgent = "ensign/" + o.Build.Version
	probe := rest.CopyConfig(config)
	probe.Timeout = connectTimeout
	client, err := discovery.NewDiscoveryClientForConfig(probe)
	if err != nil {
		return nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("reach the API server at %s; check the kubeconfig (--kubeconfig, KUBECONFIG) and that the server runs: %w", config.Host, err)
	}
	o.Logger.V(1).Info("connected", "server", config.Host, "version", version.GitVersion)
	return config, nil
}

// parts are what a manager is put together from.
type parts struct {
	options Options
	manager manager.Manager
	proxy   *proxy.Proxy
	reading *reading
	ansible ansible
	runs    *controller.RunGroup
	slots   *slots.Slots
	lease   lease
	related *related
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
	if err := p.ansible.owned.warm.count(ctrlmetrics.Registry); err != nil {
		return err
	}
	p.slots.Waited = counters.Waited
	if err := counters.ShowSlots(p.slots, p.slots.Limit(), p.ansible.names()); err != nil {
		return err
	}
	lines := eventlog.New(eventlog.Options{
		Logger: p.options.Logger.WithName("run"), Blocks: p.options.Blocks, JSON: p.options.JSONLogs, Level: p.options.LogEvents,
	})
	if err := errors.Join(p.related.addTo(p.manager, counters), p.addProxy(), p.addUserMetrics(), p.reading.add(p.manager, counters)); err != nil {
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
	for _, watch := range p.ansible.watches {
		s := p.supervisor(watch, observers, counters)
		s.Discovery = served
		if err := p.manager.Add(s); err != nil {
			return fmt.Errorf("add the watch of %s: %w", watch.GVK, err)
		}
		if err := p.manager.AddReadyzCheck("cache "+watch.GVK.GroupKind().String(), s.Check); err != nil {
			return fmt.Errorf("add the check of %s: %w", watch.GVK, err)
		}
	}
	return nil
}

func (p parts) sweeper(served kinds) sweeper {
	return sweeper{
		directories: p.ansible.runner.Root,
		reader:      p.manager.GetAPIReader(),
		kinds:       served,
		interval:    sweepInterval,
		watches:     p.ansible.watches,
		namespaces:  newEnvironment(p.options.Env).namespaces(),
		log:         p.options.Logger.WithName("sweeper"),
	}
}

func (p parts) addProxy() error {
	for _, server := range p.proxy.Servers() {
		if err := p.manager.Add(server); err != nil {
			return fmt.Errorf("add the %s: %w", server.Name, err)
		}
	}
	return p.addChecks("proxy", p.proxy.Check)
}

func (p parts) addChecks(name string, check healthz.Checker) error {
	return errors.Join(p.manager.AddHealthzCheck(name, check), p.manager.AddReadyzCheck(name, check))
}

func (p parts) supervisor(watch watches.Watch, observers []controller.Observer, counters *metrics.Metrics) *controller.Supervisor {
	o := p.options
	ready := func(gvk schema.GroupVersionKind, ready bool) { counters.WatchReady(gvk.String(), ready) }
	counters.Watch(watch.GVK.String())
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
				Recorder:  p.manager.GetEventRecorder("ensign"),
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
func confined(o Options, all []watches.Watch) func(access.Owner) bool {
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

// explainBind adds the remedy to the error of an occupied port.
func explainBind(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w (another process has this port: choose another by --metrics-bind-address or --health-probe-bind-address; 0 switches the listener off)", err)
	}
	return err
}

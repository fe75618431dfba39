package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
)

// connectTimeout bounds the first request to the API server.
const connectTimeout = 10 * time.Second

// Run runs a manager until ctx ends. Options.Check has seen its settings; what is
// wrong with its watches or Python environment is an error before the API server is contacted. It returns
// nil after an orderly stop, also one while it starts, and an error when the lease
// is lost.
func Run(ctx context.Context, o config.Options) error {
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
	return stopper{
		runs: p.runs, fence: p.lease.fence, release: p.lease.release, grace: o.GracefulShutdownTimeout,
		log: o.Logger, stopping: p.libraries.stopping,
	}.runUntilStopped(ctx, p.manager)
}

// setUp puts the manager together. Nothing in it is at work yet.
func setUp(ctx context.Context, o config.Options) (p parts, err error) {
	libraries := newLibraryLog(o.Logger)
	libraries.install()
	o = o.WithEnvironment()
	ansible, err := prepareAnsible(ctx, o)
	if err != nil {
		return parts{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ansible.end())
		}
	}()
	client, err := connect(o)
	if err != nil {
		return parts{}, err
	}
	p = parts{options: o, ansible: ansible, runs: controller.NewRunGroup(), slots: newSlots(o, ansible), probes: newProbes(o.Logger), libraries: libraries}
	end := func(grace time.Duration) { ansible.runner.Reaper.EndOwn(grace) }
	if p.lease, err = newLease(client, o, holders{stop: p.runs.Stop, end: end}); err != nil {
		return parts{}, err
	}
	ansible.runner.Ready = p.ready
	if p.related, err = newRelated(p.lease.behind(client), ansible.watches, o); err != nil {
		return parts{}, err
	}
	p.proxy, err = proxy.New(p.lease.behind(client), proxy.Options{
		Port: o.ProxyPort, OpenPort: o.ProxyOpenPort, InjectOwnerRef: o.InjectOwnerRef, IsConfined: confined(o, ansible.watches),
		Fence: p.lease.fence, WriteObservers: []access.WriteObserver{p.related}, Logger: o.Logger.WithName("proxy"),
	})
	if err != nil {
		return parts{}, err
	}
	if p.manager, err = newManager(client, p.lease, ansible.watches, o, p.libraries.Logger); err != nil {
		return parts{}, fmt.Errorf("set up the manager: %w", explainBind(err))
	}
	if p.events, err = newRecorder(ctx, p.manager.GetConfig(), p.manager.GetScheme(), o.Logger.WithName("events")); err != nil {
		return parts{}, err
	}
	return p, p.add()
}

func newSlots(o config.Options, a ansible) *slots.Slots {
	memory, warm := config.AvailableMemory(os.DirFS("/")), a.warm != nil
	config.WarnIfMemoryTooLow(o.Logger, memory, warm)
	limit := o.MaxConcurrentRuns
	if limit == 0 {
		limit = config.DefaultMaxConcurrentRuns(len(a.watches), memory, warm)
	}
	return slots.New(limit, a.names()...)
}

// connect reads the client configuration and asks the API server for its version.
func connect(o config.Options) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	client, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server (in a pod, or by --kubeconfig, KUBECONFIG or ~/.kube/config): %w", explainKubeconfig(rules, err))
	}
	client.QPS = -1 // The API server's own priority and fairness decide; a second limit here would only delay results.
	client.UserAgent = "ensign/" + o.Build.Version
	probe := rest.CopyConfig(client)
	probe.Timeout = connectTimeout
	served, err := discovery.NewDiscoveryClientForConfig(probe)
	if err != nil {
		return nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	version, err := served.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("reach the API server at %s; check the kubeconfig (--kubeconfig, KUBECONFIG) and that the server runs: %w", client.Host, err)
	}
	o.Logger.V(1).Info("connected", "server", client.Host, "version", version.GitVersion)
	return client, nil
}

// explainBind adds the remedy to the error of an occupied port.
func explainBind(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w (another process has this port: choose another by --metrics-bind-address, --health-probe-bind-address or --pprof-bind-address; 0 switches the listener off)", err)
	}
	return err
}

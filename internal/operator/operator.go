package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
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
	"github.com/ensign-operator/ensign/internal/watches"
)

// connectTimeout bounds the first request to the API server.
const connectTimeout = 10 * time.Second

// Run runs a manager until ctx ends. o.Check has passed. Run returns an error if the watches
// or the Python environment are invalid, before it contacts the API server, and an error if
// the lease is lost. It returns nil after an orderly stop, also if ctx ends during the start.
func Run(ctx context.Context, o config.Options) error {
	c, err := setUp(ctx, o)
	if err == nil {
		defer c.close()
	}
	if ctx.Err() != nil {
		o.Logger.Info("stopped before it began")
		return nil
	}
	if err != nil {
		return err
	}
	o.Logger.Info("starting", "version", o.Build.Version, "commit", o.Build.Commit, "watches", len(c.ansible.watches), "maxConcurrentRuns", c.slots.Limit(),
		"ansibleCore", c.ansible.info.AnsibleCore, "ansibleRunner", c.ansible.info.AnsibleRunner, "python", c.ansible.environment.Python)
	c.ansible.runner.Prepare() // Its environment for runs is complete.
	return stopper{
		runs: c.runs, fence: c.lease.fence, release: c.lease.release, grace: o.GracefulShutdownTimeout,
		log: o.Logger, stopping: c.libraryLog.stopping,
	}.runUntilStopped(ctx, c.manager)
}

// setUp makes all components of the manager. None of them runs yet.
func setUp(ctx context.Context, o config.Options) (c components, err error) {
	libraryLog := newLibraryLog(o.Logger)
	libraryLog.install()
	o = o.WithEnvironment()
	ansible, err := prepareAnsible(ctx, o)
	if err != nil {
		return components{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ansible.close())
		}
	}()
	client, err := connect(o)
	if err != nil {
		return components{}, err
	}
	c = components{options: o, ansible: ansible, runs: controller.NewAttempts(), slots: newSlots(o, ansible), crWrites: newCRWrites(ansible.watches), probes: newProbes(o.Logger), libraryLog: libraryLog}
	end := func(grace time.Duration) { ansible.runner.Reaper.EndOwn(grace) }
	if c.lease, err = newLease(client, o, lossHandlers{stopRuns: c.runs.Stop, endProcesses: end}); err != nil {
		return components{}, err
	}
	ansible.runner.Ready = c.checkReady
	if c.related, err = newRelatedObjects(c.lease.fencedConfig(client), ansible.watches, o); err != nil {
		return components{}, err
	}
	if slices.ContainsFunc(ansible.watches, func(w watches.Watch) bool { return w.Chart != nil }) {
		if c.sealKeys, err = newSealKeys(c.lease.fencedConfig(client), o); err != nil {
			return components{}, err
		}
	}
	c.proxy, err = proxy.New(c.lease.fencedConfig(client), proxy.Options{
		Port: o.ProxyPort, OpenPort: o.ProxyOpenPort, InjectOwnerRef: o.InjectOwnerRef, IsConfined: confinement(o, ansible.watches),
		Fence: c.lease.fence, WriteObservers: []access.WriteObserver{c.related, c.crWrites}, Logger: o.Logger.WithName("proxy"),
	})
	if err != nil {
		return components{}, err
	}
	if c.manager, err = newManager(client, c.lease, ansible.watches, o, c.libraryLog.Logger); err != nil {
		return components{}, fmt.Errorf("set up the manager: %w", explainPortInUse(err))
	}
	if c.events, err = newRecorder(ctx, c.manager.GetConfig(), c.manager.GetScheme(), o.Logger.WithName("events")); err != nil {
		return components{}, err
	}
	return c, c.addToManager()
}

func newSlots(o config.Options, a ansibleSetup) *slots.Slots {
	memory, warm := config.AvailableMemory(os.DirFS("/")), a.warm != nil
	config.WarnIfMemoryTooLow(o.Logger, memory, warm)
	limit := o.MaxConcurrentRuns
	if limit == 0 {
		limit = config.DefaultMaxConcurrentRuns(len(a.watches), memory, warm)
	}
	return slots.New(limit, a.watchedKinds()...)
}

// connect reads the client configuration and asks the API server for its version.
func connect(o config.Options) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	client, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server (in a pod, or by --kubeconfig, KUBECONFIG or ~/.kube/config): %w", explainKubeconfig(rules, err))
	}
	client.QPS = -1 // No client-side limit: the API server has priority and fairness, and a limit here would only delay results.
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

// explainPortInUse adds a remedy to the error of a port that is in use.
func explainPortInUse(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w (another process has this port: choose another by --metrics-bind-address, --health-probe-bind-address or --pprof-bind-address; 0 switches the listener off)", err)
	}
	return err
}

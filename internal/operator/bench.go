package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/ansible/engine"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
	"github.com/ensign-operator/ensign/internal/watches"
)

// Watches reads the watches file for a command that runs no content. It needs no Python
// environment, and leaves the Content of the watches empty.
func Watches(o config.Options) ([]watches.Watch, error) {
	return loadWatches(o, watches.Search{Dir: o.Dir, LookupEnv: o.Env.Lookup, KindsOnly: true})
}

// Cluster is the API server for a command.
type Cluster struct {
	// Client has no cache.
	client.Client

	Config *rest.Config
	// Namespace is that of the kubeconfig's context, or "default".
	Namespace string
}

// Connect connects to the API server. What libraries have to say goes to o.Logger from then on.
func Connect(o config.Options) (*Cluster, error) {
	newLibraryLog(o.Logger).install()
	connection, err := connect(o)
	if err != nil {
		return nil, err
	}
	c, err := client.New(connection, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	namespace, _, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).Namespace()
	if err != nil {
		return nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	return &Cluster{Client: c, Config: connection, Namespace: namespace}, nil
}

// Bench is what runs need, without a manager: the watches, the runner with its server for
// warm runs, and the API proxy.
type Bench struct {
	options config.Options
	ansible ansibleSetup
	cluster *Cluster

	// missed are objects for which runs of CRs asked that the API server does not have.
	missed missed

	endProxies context.CancelFunc
	proxies    map[bool]*proxy.Proxy // by whether they add owner references
	served     sync.WaitGroup
}

// NewBench proves, as a manager does, that the Python environment does not evaluate text of
// CRs. The caller closes the Bench when all runs have ended.
func NewBench(ctx context.Context, o config.Options, cluster *Cluster) (*Bench, error) {
	newLibraryLog(o.Logger).install()
	ansible, err := prepareAnsible(ctx, o)
	if err != nil {
		return nil, err
	}
	ansible.runner.Ready = ansible.envChecker.Check
	ansible.runner.Prepare()
	return &Bench{options: o, ansible: ansible, cluster: cluster, proxies: map[bool]*proxy.Proxy{}, endProxies: func() {}}, nil
}

// Close ends the servers of the Bench.
func (b *Bench) Close() error {
	b.endProxies()
	b.served.Wait()
	return b.ansible.close()
}

// Watches returns the watches, with their content.
func (b *Bench) Watches() []watches.Watch { return b.ansible.watches }

// Reconciler returns a Reconciler for RunOnce, whose runs are observed by observer. owned is
// false for CRs that the API server does not have: what their runs create gets no owner.
func (b *Bench) Reconciler(watch watches.Watch, owned bool, observer engine.Observer) (*controller.Reconciler, error) {
	if watch.Chart != nil {
		return nil, fmt.Errorf("the content of %s is a chart: run-once runs roles and playbooks, helm template shows what a chart gives", watch.GVK.GroupKind())
	}
	p, err := b.proxy(owned)
	if err != nil {
		return nil, err
	}
	c := components{options: b.options, ansible: b.ansible}
	runs, err := c.content(watch, []engine.Observer{observer})
	if err != nil {
		return nil, err
	}
	return &controller.Reconciler{
		Watch:    watch,
		Defaults: c.defaults(),
		Client:   b.cluster,
		Reader:   b.cluster,
		Content:  runs,
		Access:   proxyAccess{p},
		Attempts: controller.NewAttempts(),
		Clock:    clock.RealClock{},
	}, nil
}

// Missed reports whether a run for a CR that the API server does not have has asked for the object
// of the path, such as /apis/demo.example.com/v1/namespaces/shop/greetings/hello, or for its status,
// since Missed was called last.
func (b *Bench) Missed(path string) bool { return b.missed.take(path) }

// proxy returns the proxy, which keeps its address: clients of runs cache what the API
// server has by it.
func (b *Bench) proxy(owned bool) (*proxy.Proxy, error) {
	if p := b.proxies[owned]; p != nil {
		return p, nil
	}
	connection := b.cluster.Config
	if !owned {
		connection = rest.CopyConfig(connection)
		connection.Wrap(b.missed.watch)
	}
	p, err := proxy.New(connection, proxy.Options{
		Port: b.options.ProxyPort, InjectOwnerRef: owned && b.options.InjectOwnerRef, IsConfined: confinement(b.options, b.ansible.watches),
		Logger: b.options.Logger.WithName("proxy"),
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.endProxies = func(before context.CancelFunc) context.CancelFunc {
		return func() { before(); cancel() }
	}(b.endProxies)
	b.served.Go(func() {
		if err := p.Server().Start(ctx); err != nil && !errors.Is(err, context.Canceled) {
			b.options.Logger.Error(err, "the API proxy has ended")
		}
	})
	b.proxies[owned] = p
	return p, nil
}

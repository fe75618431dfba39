package operator

import (
	"context"
	"errors"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansible "github.com/ensign-operator/ensign/internal/ansible/backend"
	"github.com/ensign-operator/ensign/internal/ansible/engine"
	charts "github.com/ensign-operator/ensign/internal/chart/backend"
	chart "github.com/ensign-operator/ensign/internal/chart/engine"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/internal/runapi"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// LocalRunner has the parts that runs need, without a manager: the watches, the runners, with the server for
// warm runs, and the API proxy.
type LocalRunner struct {
	options config.Options
	ansible *ansible.Backend
	charts  map[schema.GroupVersionKind]*chart.Engine
	watches []watches.Watch
	dirs    process.Dirs
	client  client.Client
	server  *rest.Config

	// notFound has the paths that the API server has answered with 404 to runs of CRs that it does not have.
	notFound notFoundPaths

	endProxies context.CancelFunc
	proxies    map[bool]*proxy.Proxy // by whether they add owner references
	served     sync.WaitGroup
}

// NewLocalRunner proves, as a manager does, that the Python environment does not evaluate text of
// CRs. c and server are its access to the API server. The caller closes the LocalRunner when all runs have ended.
func NewLocalRunner(ctx context.Context, o config.Options, c client.Client, server *rest.Config) (*LocalRunner, error) {
	p := &ansible.Python{}
	list, err := loadContent(ctx, o, p)
	if err != nil {
		return nil, err
	}
	b := newLocalRunner(o, list, p, c, server)
	if b.dirs, err = openRunDirs(o); err != nil {
		return nil, err
	}
	its := slices.DeleteFunc(slices.Clone(list), func(w watches.Watch) bool { return !isAnsible(w) })
	if len(its) == 0 {
		return b, nil
	}
	if err := b.ansible.Prepare(ctx, its, b.dirs); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	b.ansible.PrepareRuns()
	return b, nil
}

func newLocalRunner(o config.Options, list []watches.Watch, p *ansible.Python, c client.Client, server *rest.Config) *LocalRunner {
	return &LocalRunner{
		options: o, watches: list, ansible: &ansible.Backend{Options: o, Python: p}, charts: map[schema.GroupVersionKind]*chart.Engine{},
		client: c, server: server, proxies: map[bool]*proxy.Proxy{}, endProxies: func() {},
	}
}

// Close ends the servers of the LocalRunner.
func (b *LocalRunner) Close() error {
	b.endProxies()
	b.served.Wait()
	return errors.Join(b.ansible.Close(), b.dirs.Close())
}

// Watches returns the watches, with their content.
func (b *LocalRunner) Watches() []watches.Watch { return b.watches }

// ContentPaths returns the files and directories that runs may read.
func (b *LocalRunner) ContentPaths() []string { return b.ansible.ContentPaths() }

// Reconciler returns a Reconciler for RunOnce, whose runs are observed by
// observer. owned is false for CRs that the API server does not have: the objects that their runs
// create get no owner.
func (b *LocalRunner) Reconciler(watch watches.Watch, owned bool, observer engine.Observer) (*controller.Reconciler, error) {
	p, err := b.proxy(owned)
	if err != nil {
		return nil, err
	}
	var runs content.Engine
	if isChart(watch) {
		runs, err = b.chart(watch)
	} else {
		b.ansible.Observe(observer)
		runs = b.ansible.Engine(watch)
	}
	if err != nil {
		return nil, err
	}
	return &controller.Reconciler{
		Watch:     watch,
		Defaults:  defaults(b.options),
		Client:    b.client,
		Reader:    b.client,
		Content:   runs,
		Access:    runapi.Access{Proxy: p, Release: isChart(watch)},
		Observers: []content.Observer{observer},
		Attempts:  controller.NewAttempts(),
		Clock:     clock.RealClock{},
	}, nil
}

// chart returns the engine for the releases of a watch.
func (b *LocalRunner) chart(watch watches.Watch) (*chart.Engine, error) {
	if known := b.charts[watch.GVK]; known != nil {
		return known, nil
	}
	var mapper meta.RESTMapper
	if b.client != nil {
		mapper = b.client.RESTMapper()
	}
	made, err := charts.NewEngine(b.options, watch, mapper, b.dirs)
	b.charts[watch.GVK] = made
	return made, err
}

// NotFound reports whether a run for a CR that the API server does not have has asked for the object
// of the path, or for its status, since NotFound was called last. A path is, for example,
// /apis/demo.example.com/v1/namespaces/shop/greetings/hello.
func (b *LocalRunner) NotFound(path string) bool { return b.notFound.take(path) }

// proxy returns the proxy. It keeps its address, by which clients of runs cache discovery.
func (b *LocalRunner) proxy(owned bool) (*proxy.Proxy, error) {
	if p := b.proxies[owned]; p != nil {
		return p, nil
	}
	connection := b.server
	if !owned {
		connection = rest.CopyConfig(connection)
		connection.Wrap(b.notFound.watch)
	}
	p, err := proxy.New(connection, proxy.Options{
		Port: b.options.ProxyPort, InjectOwnerRef: owned && !b.options.NoOwnerReferences, IsConfined: runapi.Confinement(b.options.ConfineToNamespace, b.watches),
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

package operator

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	charts "github.com/ensign-operator/ensign/internal/chart/backend"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
	"github.com/ensign-operator/ensign/internal/leadership"
	"github.com/ensign-operator/ensign/internal/observe/eventlog"
	"github.com/ensign-operator/ensign/internal/observe/metrics"
	"github.com/ensign-operator/ensign/internal/runapi"
	"github.com/ensign-operator/ensign/pkg/content"
)

// The needs of runs: slots, the log and the metrics of runs, their access to the API.

func newSlots(o config.Options, list []Watch, warm bool) *slots.Slots {
	memory := config.AvailableMemory(os.DirFS("/"))
	config.WarnIfMemoryTooLow(o.Logger, memory, warm)
	limit := o.MaxConcurrentRuns
	if limit == 0 {
		limit = config.DefaultMaxConcurrentRuns(len(list), memory, warm)
	}
	return slots.New(limit, kindsOf(list)...)
}

// observeRuns makes the log, the metrics and the traces of runs.
func (c *components) observeRuns(context.Context) (err error) {
	if c.counters, err = metrics.New(c.registerer, metrics.Build{Version: c.options.Version, Commit: c.options.Commit}); err != nil {
		return explainRegistered(err)
	}
	c.slots.ObserveWait, c.jobSlots.ObserveWait = c.counters.ObserveWait, c.counters.ObserveWait
	err = errors.Join(
		metrics.RegisterRunDirectory(c.registerer, c.dirs.Root.Bytes),
		c.counters.RegisterLeader(leader{c}, kindsOf(c.list)),
	)
	c.observers = []content.Observer{eventlog.New(logOptions(c.options)), c.counters}
	c.traceRuns()
	return err
}

// leader shows what the manager has while it leads.
type leader struct{ *components }

// Leads implements metrics.Leader.
func (l leader) Leads() bool {
	select {
	case <-l.Elected():
		return true
	default:
		return false
	}
}

// Slots implements metrics.Leader.
func (l leader) Slots() int { return l.slots.Limit() }

// Resources implements metrics.Leader.
func (l leader) Resources(watch schema.GroupVersionKind) map[string]int {
	states := map[string]int{}
	for phase, number := range l.supervisors[watch].Resources() {
		states[string(phase)] = number
	}
	return states
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

// serveRuns makes and adds the API proxy of runs.
func (c *components) serveRuns(ctx context.Context) (err error) {
	if c.records, err = charts.NewRecords(c.client, leadership.Namespace(c.election), c.recordName("")); err != nil {
		return err
	}
	c.proxy, err = proxy.New(c.client, proxy.Options{
		Port: c.options.ProxyPort, OpenPort: c.options.ProxyOpenPort, InjectOwnerRef: !c.options.NoOwnerReferences,
		IsConfined: runapi.Confinement(c.options.ConfineToNamespace, plain(c.list)), Fence: c.lease.Fence,
		WriteObservers: []runapi.WriteObserver{c.related, c.crWrites}, ObserveRequest: c.observeRequest(),
		Report: c.records.Report, ReportPath: charts.ReportPath, Logger: c.options.Logger.WithName("proxy"),
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
	c.probes.Healthz.Checks["proxy"], c.probes.Readyz.Checks["proxy"] = c.proxy.Check, c.proxy.Check
	var end func()
	if c.events, end, err = runapi.NewRecorder(ctx, c.client, c.GetScheme(), c.options.Logger.WithName("events")); err == nil {
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

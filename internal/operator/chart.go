package operator

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	charts "github.com/ensign-operator/ensign/internal/chart/backend"
	chart "github.com/ensign-operator/ensign/internal/chart/engine"
	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/internal/kubeapi/children"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// chartBackend has the watches of charts.
type chartBackend struct {
	*charts.Backend

	all *components
}

func newChartBackend(m *Manager) *chartBackend {
	return &chartBackend{Backend: &charts.Backend{Options: m.options, Ready: m.lease.Check}}
}

func (*chartBackend) claims(w Watch) bool { return isChart(w.Watch) }
func (*chartBackend) keepsServer() bool   { return false }
func (*chartBackend) close() error        { return nil }

// isChart reports whether the content of the watch is a chart.
func isChart(w watches.Watch) bool { return w.Chart != nil }

func (c *chartBackend) prepare(_ context.Context, list []Watch, at runDirs) error {
	return c.Prepare(plain(list), at.root, at.reaper)
}

func (c *chartBackend) connect(all *components) error {
	c.all = all
	return c.Connect(charts.Host{Records: all.records, Mapper: all.GetRESTMapper(), Recorder: all.events, Informers: followed{all.related.Children}})
}

// engine returns the engine for the releases of the watch.
func (c *chartBackend) engine(w Watch) (content.Engine, error) {
	runs, err := c.all.inJobsOf(w.Watch, wire.Assignment{Settings: jobSettings(c.Options, false)})
	if err != nil {
		return nil, err
	}
	return c.Engine(w.Watch, runs)
}

// followed tells of the objects that are followed because releases have them.
type followed struct{ children *children.Children }

// Object implements chart.Informers.
func (f followed) Object(kind string, resource schema.GroupVersionResource, namespace, name string) (chart.Known, bool) {
	known, live := f.children.Known(kind, resource, namespace, name)
	return chart.Known(known), live
}

// Series implements chart.Informers.
func (f followed) Series(kind string, resource schema.GroupVersionResource, namespace, base string) (map[string]chart.Known, bool) {
	known, live := f.children.KnownSeries(kind, resource, namespace, base)
	all := make(map[string]chart.Known, len(known))
	for name, one := range known {
		all[name] = chart.Known(one)
	}
	return all, live
}

package operator

import (
	"context"

	charts "github.com/ensign-operator/ensign/internal/chart/backend"
	"github.com/ensign-operator/ensign/internal/process"
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

func (c *chartBackend) prepare(_ context.Context, list []Watch, at process.Dirs) error {
	return c.Prepare(plain(list), at)
}

func (c *chartBackend) connect(all *components) error {
	c.all = all
	return c.Connect(charts.Host{Records: all.records, Mapper: all.GetRESTMapper(), Recorder: all.events, Informers: all.related.Informers()})
}

// engine returns the engine for the releases of the watch.
func (c *chartBackend) engine(w Watch) (content.Engine, error) {
	settings := agentSettingsOf(c.Options)
	settings.Chart = true
	runs, err := c.all.inJobsOf(w.Watch, settings)
	if err != nil {
		return nil, err
	}
	return c.Engine(w.Watch, runs)
}

package operator

import (
	"context"

	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/internal/run/custom"
	"github.com/ensign-operator/ensign/pkg/content"
)

// customBackend has the watches whose engine a Go program brings.
type customBackend struct{ all *components }

func (*customBackend) claims(w Watch) bool                                  { return w.Engine != nil }
func (*customBackend) prepare(context.Context, []Watch, process.Dirs) error { return nil }
func (*customBackend) keepsServer() bool                                    { return false }
func (*customBackend) close() error                                         { return nil }

func (b *customBackend) connect(c *components) error {
	b.all = c
	return nil
}

// engine returns the program's own, or one around it whose runs execute in Jobs.
func (b *customBackend) engine(w Watch) (content.Engine, error) {
	settings := agentSettingsOf(b.all.options)
	settings.Custom = &w.GVK
	jobs, err := b.all.inJobsOf(w.Watch, settings)
	if jobs == nil {
		return w.Engine, err
	}
	return &custom.Engine{Engine: w.Engine, Executor: jobs, Timeout: w.Timeout}, nil
}

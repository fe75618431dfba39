package operator

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/pkg/content"
)

// customWing has the watches whose engine a Go program brings.
type customWing struct{ all *components }

func (*customWing) claims(w Watch) bool                               { return w.Engine != nil }
func (*customWing) prepare(context.Context, []Watch, workplace) error { return nil }
func (*customWing) keepsServer() bool                                 { return false }
func (*customWing) close() error                                      { return nil }

// connect notes where the observers of runs are.
func (c *customWing) connect(all *components) error {
	c.all = all
	return nil
}

// engine returns the program's own, whose runs the log and the metrics show.
func (c *customWing) engine(w Watch) (content.Engine, error) {
	return shownEngine{w.Engine, chartObservers(c.all.observers)}, nil
}

// digest returns what the engine says; without a word of it each CR runs once after a restart.
func (*customWing) digest(w Watch) string {
	if d, knows := w.Engine.(content.Digester); knows {
		return d.Digest()
	}
	return ""
}

// shownEngine tells the observers of the runs of an engine, which does not know them.
type shownEngine struct {
	content.Engine

	observers chartObservers
}

// FinalizesWithoutValues implements content.ValuelessFinalizer.
func (e shownEngine) FinalizesWithoutValues() bool {
	f, may := e.Engine.(content.ValuelessFinalizer)
	return may && f.FinalizesWithoutValues()
}

// Prepare implements content.Engine.
func (e shownEngine) Prepare(ctx context.Context, r content.Request) (content.Work, *content.Outcome) {
	work, refusal := e.Engine.Prepare(ctx, r)
	return shownWork{work, e.observers}, refusal
}

// Forget implements content.Engine.
func (e shownEngine) Forget(watch schema.GroupVersionKind, object string) {
	e.observers.Forget(watch, object)
	e.Engine.Forget(watch, object)
}

type shownWork struct {
	content.Work

	observers chartObservers
}

// Run implements content.Work.
func (w shownWork) Run(ctx context.Context, job content.Job) content.Result {
	started := time.Now()
	w.observers.Started(job.Run)
	result := w.Work.Run(ctx, job)
	w.observers.Ended(job.Run, result.Outcome, time.Since(started))
	return result
}

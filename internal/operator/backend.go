package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/hooks"
	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/pkg/options"
)

// backend is a manager's part for one kind of content. It is there only if a watch has such
// content.
type backend interface {
	// claims reports whether the content of the watch is of this kind.
	claims(w Watch) bool
	// prepare checks the content of the watches, and makes the engine for it. It does not contact
	// the API server.
	prepare(ctx context.Context, list []Watch, at process.Dirs) error
	// connect is called once, when all components are there but the watches.
	connect(c *components) error
	// engine returns the engine that runs the content of a watch.
	engine(w Watch) (content.Engine, error)
	// keepsServer reports whether a server for warm runs needs memory beside the runs.
	keepsServer() bool
	// close releases the resources that prepare took. All runs have ended.
	close() error
}

// backends are those that the watches of a manager need.
type backends []backend

// newBackends returns the backends for the watches. A watch belongs to the first backend that
// claims it.
func newBackends(m *Manager, list []Watch) backends {
	all := backends{&customBackend{}, newChartBackend(m), newAnsibleBackend(m)}
	var needed backends
	for _, one := range all {
		if len(all.share(one, list)) > 0 {
			needed = append(needed, one)
		}
	}
	return needed
}

// of returns the backend that has the watch.
func (all backends) of(w Watch) backend {
	for _, one := range all {
		if one.claims(w) {
			return one
		}
	}
	return nil
}

// share returns the watches that the backend has.
func (all backends) share(one backend, list []Watch) []Watch {
	var its []Watch
	for _, w := range list {
		if all.of(w) == one {
			its = append(its, w)
		}
	}
	return its
}

func (all backends) prepare(ctx context.Context, list []Watch, at process.Dirs) error {
	for _, one := range all {
		if err := one.prepare(ctx, all.share(one, list), at); err != nil {
			return err
		}
	}
	return nil
}

func (all backends) connect(c *components) error {
	for _, one := range all {
		if err := one.connect(c); err != nil {
			return err
		}
	}
	return nil
}

// engine returns the engine for the controller of the watch, with the hooks of a Go program around
// it.
func (all backends) engine(w Watch) (content.Engine, error) {
	engine, err := all.of(w).engine(w)
	if err != nil {
		return nil, err
	}
	h := w.Hooks
	h.Timeout = w.Timeout
	return hooks.Wrap(engine, h), nil
}

func (all backends) keepsServer() bool {
	for _, one := range all {
		if one.keepsServer() {
			return true
		}
	}
	return false
}

func (all backends) close() error {
	var errs []error
	for _, one := range all {
		errs = append(errs, one.close())
	}
	return errors.Join(errs...)
}

// openRunDirs takes the run directory, after the processes that a killed manager left there
// have been ended.
func openRunDirs(o config.Options) (process.Dirs, error) {
	root, reaper, err := process.TakeOver(o.RunDir, o.Logger)
	if err != nil {
		return process.Dirs{}, &options.Error{Field: "RunDir", Err: fmt.Errorf("%w; choose another", err)}
	}
	if err := root.Limit(max(o.ArtifactsMaxBytes, 0)); err != nil {
		return process.Dirs{}, errors.Join(&options.Error{Field: "RunDir", Err: fmt.Errorf("%w; choose another", err)}, root.Close())
	}
	return process.Dirs{Root: root, Reaper: reaper}, nil
}

package children

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// load follows the kinds that an earlier manager knew. It tries until it may read them;
// controllers wait only for what may soon answer.
func (c *Children) load(ctx context.Context) {
	release := sync.OnceFunc(func() { close(c.restored) })
	defer release()
	pause := c.limits.retry / 10
	for c.options.Record != nil && ctx.Err() == nil {
		all, err := c.options.Record.Load(ctx)
		if err == nil {
			c.adopt(all)
			return
		}
		c.options.Logger.Info("no children are watched until a run writes to one, or the record of their kinds can be read", "error", err.Error())
		if apierrors.IsForbidden(err) {
			release()
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			pause = min(2*pause, longest(err))
		}
	}
}

func (c *Children) adopt(all map[string][]Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, watch := range c.options.Watches {
		name := watch.GVK.GroupKind()
		c.saved[name.String()] = all[name.String()]
		for _, kind := range all[name.String()] {
			if watch.Dependents && !watch.leaves(kind) && kind.Resource != "" && kind.Version != "" {
				c.use(name, kind)
			}
		}
	}
	c.adopted, c.checked = true, time.Now()
	c.changed = true // Some may not be wanted any more.
}

// save writes the record where it does not say what it should. What can't be written
// is tried again after ever longer pauses.
func (c *Children) save(ctx context.Context) {
	c.check(ctx)
	for watch, kinds := range c.unsaved() {
		err := c.options.Record.Save(ctx, watch, kinds)
		if err != nil && ctx.Err() == nil {
			c.options.Logger.Info("could not note which children to watch: after a restart they are not until a run writes to one", "error", err.Error())
		}
		c.mu.Lock()
		if err == nil {
			c.saved[watch], c.pause = kinds, 0
		} else {
			c.pause = min(max(c.limits.retry, 2*c.pause), longest(err))
			c.changed, c.retry = true, time.Now().Add(c.pause)
		}
		c.mu.Unlock()
	}
}

// longest is the longest pause after an error of the record: what the API server refuses
// takes somebody to mend it, and what else fails may work at any time.
func longest(err error) time.Duration {
	if refuses(err) || apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) {
		return longPause
	}
	return 30 * time.Second
}

// check reads the record now and then: somebody may have changed or deleted it.
func (c *Children) check(ctx context.Context) {
	c.mu.Lock()
	due := c.adopted && time.Since(c.checked) > c.limits.check
	if due {
		c.checked = time.Now()
	}
	c.mu.Unlock()
	if !due {
		return
	}
	all, err := c.options.Record.Load(ctx)
	if err != nil {
		return // That may pass, and the record may be as it was.
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.watches {
		c.saved[name.String()] = all[name.String()]
	}
	c.changed = true
}

// unsaved are the watches, with their kinds, of which the record says something
// else. There are none before it is known what is there.
func (c *Children) unsaved() map[string][]Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := map[string][]Kind{}
	if !c.changed || !c.adopted || time.Now().Before(c.retry) {
		return wanted
	}
	c.changed = false
	for name := range c.watches {
		if kinds := c.kindsOf(name); !slices.Equal(kinds, c.saved[name.String()]) {
			wanted[name.String()] = kinds
		}
	}
	return wanted
}

// kindsOf needs the lock.
func (c *Children) kindsOf(watch schema.GroupKind) []Kind {
	var kinds []Kind
	for _, f := range c.kinds {
		if _, ok := f.uses[watch]; ok {
			kinds = append(kinds, f.kind)
		}
	}
	slices.SortFunc(kinds, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	return kinds
}

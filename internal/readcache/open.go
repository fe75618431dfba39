package readcache

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/informers"
)

// open begins to follow a kind.
func (c *Cache) open(ctx context.Context, w want) {
	form, err := c.survey.look(ctx, w.kind.key)
	c.mu.Lock()
	if form != nil {
		w.kind.form = form
	}
	if err != nil || c.skips(w.kind, w.watch) {
		w.kind.opening = false
		if err != nil && ctx.Err() == nil {
			c.rest(w.kind, err)
		}
		c.mu.Unlock()
		return
	}
	weight := &weight{press: c.press}
	w.kind.weight = weight
	c.mu.Unlock()

	informer, release := c.set.Use(w.kind.key, weight)

	c.mu.Lock()
	defer c.mu.Unlock()
	w.kind.opening, w.kind.said = false, false
	w.kind.informer, w.kind.release = informer, release
}

// skips reports whether runs of the watch read the kind live, and logs it in the words of
// the ansible-operator base image, which scripts look for.
func (c *Cache) skips(k *kept, watch schema.GroupVersionKind) bool {
	if !c.options.Blacklisted(watch, k.form.kind) {
		return false
	}
	c.options.Logger.Info("Skipping cache lookup", "watch", watch.String(), "resource", k.key.String())
	return true
}

// transformOf is called while the set begins an informer for open.
func (c *Cache) transformOf(key informers.Key) func(any) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kinds[key].weight.keep
}

// rest lets a kind be read live for a while. It needs the lock.
func (c *Cache) rest(k *kept, reason error) {
	pause := shortTime
	switch {
	case errors.Is(reason, errUnfit):
		pause = unfitTime
	case apierrors.IsForbidden(reason), apierrors.IsNotFound(reason), apierrors.IsMethodNotSupported(reason):
		pause = refusedTime
	}
	k.rests = c.options.Clock.Now().Add(pause)
	log := c.options.Logger
	if k.said {
		log = log.V(1)
	}
	k.said = true
	log.Info("a kind is read from the API server and not from the cache", "resource", k.key.String(), "pause", pause.String(), "reason", reason.Error())
}

// press asks for a look at the limit.
func (c *Cache) press() {
	select {
	case c.pressed <- struct{}{}:
	default:
	}
}

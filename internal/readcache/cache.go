package readcache

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/ensign-operator/ensign/internal/access"
	"github.com/ensign-operator/ensign/internal/informers"
	"github.com/ensign-operator/ensign/internal/readcache/written"
)

const (
	// idleTime is after how long without a read a kind is kept no more.
	idleTime = 10 * time.Minute
	// unfitTime is for how long a kind is read live that does not fit, and
	// refusedTime for one that may not be followed or is not served. After other
	// errors it is shortTime.
	unfitTime   = 10 * time.Minute
	refusedTime = 5 * time.Minute
	shortTime   = 30 * time.Second
	// tidyInterval is how often idle kinds are looked for.
	tidyInterval = time.Minute
	// surveyLimit bounds the requests that come before a kind is followed.
	surveyLimit = 10 * time.Second
	// openings is how many kinds may wait to be followed; more are asked for again.
	openings = 64
)

// Result is what became of a read.
type Result string

const (
	// Hit is a read that was answered from the cache.
	Hit Result = "hit"
	// Miss is one that might have been, at another time.
	Miss Result = "miss"
	// Bypass is one that is always the API server's: a watch, a page, a Secret.
	Bypass Result = "bypass"
)

// Options are the settings of a Cache.
type Options struct {
	// MaxBytes limits what all objects together take; the least recently read kinds
	// go first. A list that arrives may pass it for a moment.
	MaxBytes int64
	// Namespaces are those of which namespaced kinds may be kept; none means all.
	Namespaces []string
	// Blacklisted tells whether runs of a watch are to read a kind live; nil if none
	// are.
	Blacklisted func(watch schema.GroupVersionKind, kind schema.GroupKind) bool
	// Observe is told the result of each read.
	Observe func(Result)
	// Followed is told what becomes of following a kind, as informers.Options.Observe.
	Followed func(informers.Key, informers.State)
	Logger   logr.Logger
	// Clock is the real one by default.
	Clock clock.WithTicker
}

// Cache answers reads of runs. It is an access.Reader, an access.Follower, and a
// manager.Runnable, before whose Start everything is read live.
type Cache struct {
	options Options
	survey  survey
	set     *informers.Set
	writes  *written.Log
	wanted  chan want
	pressed chan struct{}

	mu    sync.Mutex
	kinds map[informers.Key]*kept
}

// want is a kind to follow, for a run of a watch.
type want struct {
	kind  *kept
	watch schema.GroupVersionKind
}

// New makes a cache that reaches the API server as cfg says.
func New(cfg *rest.Config, options Options) (*Cache, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make the client of the read cache: %w", err)
	}
	bounded := rest.CopyConfig(cfg)
	bounded.Timeout = surveyLimit
	served, err := discovery.NewDiscoveryClientForConfig(bounded)
	if err != nil {
		return nil, fmt.Errorf("make the discovery client of the read cache: %w", err)
	}
	if options.Blacklisted == nil {
		options.Blacklisted = func(schema.GroupVersionKind, schema.GroupKind) bool { return false }
	}
	if options.Observe == nil {
		options.Observe = func(Result) {}
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	c := &Cache{
		options: options,
		survey:  survey{discovery: served, confined: len(options.Namespaces) > 0, limit: options.MaxBytes},
		writes:  written.New(options.Clock),
		wanted:  make(chan want, openings),
		pressed: make(chan struct{}, 1),
		kinds:   map[informers.Key]*kept{},
	}
	c.set = informers.New(informers.Options{
		Client:      client,
		TransformOf: c.transformOf,
		Indexers:    toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc},
		Logger:      options.Logger,
		Observe:     options.Followed,
	})
	return c, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: only the leader has
// runs that read.
func (c *Cache) NeedLeaderElection() bool { return true }

// Start keeps house until ctx ends.
func (c *Cache) Start(ctx context.Context) error {
	ticker := c.options.Clock.NewTicker(tidyInterval)
	defer ticker.Stop()
	var helpers sync.WaitGroup
	defer helpers.Wait()
	helpers.Go(func() { _ = c.set.Start(ctx) }) // It has no errors.
	for {
		select {
		case <-ctx.Done():
			return nil
		case w := <-c.wanted:
			helpers.Go(func() { c.open(ctx, w) })
		case <-c.pressed:
			c.shed()
		case <-ticker.C():
			c.tidy()
		}
	}
}

// Writing implements access.Follower.
func (c *Cache) Writing(session *access.Session, write access.Write) (answered func(access.Answer)) {
	return c.writes.Begin(session, write)
}

// Ended implements access.Follower.
func (c *Cache) Ended(session *access.Session) { c.writes.End(session) }

// Answer implements access.Reader.
func (c *Cache) Answer(w http.ResponseWriter, r *http.Request, session *access.Session, info *apirequest.RequestInfo) bool {
	result := c.answer(w, r, session, info)
	c.options.Observe(result)
	return result == Hit
}

func (c *Cache) answer(w http.ResponseWriter, r *http.Request, session *access.Session, info *apirequest.RequestInfo) Result {
	q, ok := ask(r, info)
	if !ok {
		return Bypass
	}
	key, ok := c.key(q)
	if !ok {
		return Bypass
	}
	store, form, result := c.consult(key, session.Owner.GVK)
	switch {
	case result != Hit:
		return result
	case q.namespace != "" && !form.namespaced:
		return Bypass // There is no such place, which is not the same as an empty one.
	}
	// Read before the objects, which are at least as new.
	version := store.LastStoreSyncResourceVersion()
	among := scope(store, q)
	read := written.Read{Resource: q.resource, Namespace: q.namespace, Reached: version, Objects: uids(among)}
	if q.name != "" && len(among) == 0 || !c.writes.Shows(session, read) {
		return Miss
	}
	if q.name != "" {
		form.writeObject(w, among[0])
	} else {
		form.writeList(w, chosen(among, q), version)
	}
	return Hit
}

// key is that of the informer which would know all that is asked for.
func (c *Cache) key(q question) (informers.Key, bool) {
	key := informers.Key{Resource: q.resource}
	if len(c.options.Namespaces) == 0 || q.namespace == "" {
		return key, true
	}
	for _, namespace := range c.options.Namespaces {
		if namespace == q.namespace {
			key.Namespace = namespace
			return key, true
		}
	}
	return key, false
}

// consult gives what can be read from now, and sees to it that it can be later.
func (c *Cache) consult(key informers.Key, watch schema.GroupVersionKind) (toolscache.Indexer, *form, Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.kinds[key]
	if !ok {
		k = &kept{key: key}
		c.kinds[key] = k
	}
	now := c.options.Clock.Now()
	k.used = now
	switch {
	case k.form != nil && c.skips(k, watch):
		return nil, nil, Bypass
	case k.informer == nil && !k.opening && !now.Before(k.rests):
		select {
		case c.wanted <- want{k, watch}:
			k.opening = true
		default:
		}
	case k.hopeless():
		c.press()
	case k.answers():
		return k.informer.Store(), k.form, Hit
	}
	return nil, nil, Miss
}

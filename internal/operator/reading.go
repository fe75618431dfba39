package operator

import (
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ensign-operator/ensign/internal/access"
	"github.com/ensign-operator/ensign/internal/informers"
	"github.com/ensign-operator/ensign/internal/metrics"
	"github.com/ensign-operator/ensign/internal/proxy"
	"github.com/ensign-operator/ensign/internal/readcache"
	"github.com/ensign-operator/ensign/internal/watches"
)

// reading answers reads of runs from a cache; without one it counts them.
type reading struct {
	cache *readcache.Cache
	// count takes the result of a read, and counters what becomes of following a kind;
	// they are set before there is any.
	count    func(result string)
	counters *metrics.Metrics
}

func newReading(config *rest.Config, o Options, all []watches.Watch) (*reading, error) {
	r := &reading{}
	if o.ProxyCacheMaxBytes == 0 {
		return r, nil
	}
	var err error
	r.cache, err = readcache.New(config, readcache.Options{
		MaxBytes:    o.ProxyCacheMaxBytes,
		Namespaces:  newEnvironment(o.Env).namespaces(),
		Blacklisted: blacklisted(all),
		Observe:     func(result readcache.Result) { r.count(string(result)) },
		Followed: func(key informers.Key, state informers.State) {
			r.counters.Followed("reads", key.Resource.GroupResource().String(), key.Namespace, shownState(state))
		},
		Logger: o.Logger.WithName("read-cache"),
	})
	if err != nil {
		return nil, fmt.Errorf("prepare the cache for reads of runs: %w", err)
	}
	return r, nil
}

// blacklisted tells which kinds the runs of a watch read live.
func blacklisted(all []watches.Watch) func(schema.GroupVersionKind, schema.GroupKind) bool {
	lists := map[schema.GroupVersionKind][]schema.GroupKind{}
	for i := range all {
		lists[all[i].GVK] = all[i].Blacklist
	}
	return func(watch schema.GroupVersionKind, kind schema.GroupKind) bool {
		return slices.Contains(lists[watch], kind)
	}
}

// attach lets the proxy ask the cache, and tell it what runs write. Without a cache
// reads are counted.
func (r *reading) attach(o *proxy.Options) {
	if r.cache == nil {
		o.Reader = r
		return
	}
	o.Reader = r.cache
	o.Followers = append(o.Followers, r.cache)
}

// Answer implements access.Reader for want of a cache.
func (r *reading) Answer(http.ResponseWriter, *http.Request, *access.Session, *apirequest.RequestInfo) bool {
	r.count(string(readcache.Bypass))
	return false
}

// add lets the cache work with the manager, and shows it.
func (r *reading) add(m manager.Manager, counters *metrics.Metrics) (err error) {
	r.counters = counters
	if r.count, err = counters.ShowReads(); err != nil || r.cache == nil {
		return err
	}
	if err := counters.ShowReadCache(r.cache); err != nil {
		return err
	}
	if err := m.Add(r.cache); err != nil {
		return fmt.Errorf("add the cache for reads of runs: %w", err)
	}
	return nil
}

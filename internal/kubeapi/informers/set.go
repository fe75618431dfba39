package informers

import (
	"context"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	toolscache "k8s.io/client-go/tools/cache"
)

// Key is the resource and namespace that an informer follows.
type Key struct {
	Resource schema.GroupVersionResource
	// Namespace is "" for all namespaces, and for a cluster-scoped resource.
	Namespace string
}

func (k Key) String() string {
	return strings.TrimSuffix(k.Resource.GroupVersion().String()+" "+k.Resource.Resource+" in "+k.Namespace, " in ")
}

// State is the state of an informer.
type State string

const (
	// Starting is the state until the store is filled for the first time.
	Starting State = "starting"
	// Live is the state of an informer whose watch is open and whose store is filled: it sees
	// every change. The informer stays live while client-go replaces a watch that has ended.
	Live State = "live"
	// Failing is the state after a list or watch has failed, until the informer lists and watches again.
	Failing State = "failing"
	// Ended is the state of a stopped informer: it is unused, or the Set has ended.
	Ended State = "ended"
)

// Options are the settings of a Set. Client is required.
type Options struct {
	Client dynamic.Interface
	// Transform returns the form in which the informer keeps an object from the API server; nil
	// keeps all of it. It is also called with its own results and must return them unchanged.
	// meta.Accessor must work on the results: a small type can have GetObjectMeta. After an error
	// or a panic the object is lost, so Transform must not be used as a filter.
	Transform func(any) (any, error)
	// Indexers index the stores; nil: there are none.
	Indexers toolscache.Indexers
	Logger   logr.Logger
	// OnStateChange is called for each new state of an informer, one call at a time for each
	// informer. It must not call the Set.
	OnStateChange func(Key, State)
}

// Set is a set of informers. It is a manager.Runnable: no informer runs before Start.
type Set struct {
	options Options

	mu        sync.Mutex
	informers map[Key]*Informer
	started   bool
	running   sync.WaitGroup
}

// New returns a Set without informers.
func New(options Options) *Set {
	if options.OnStateChange == nil {
		options.OnStateChange = func(Key, State) {}
	}
	return &Set{options: options, informers: map[Key]*Informer{}}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. Only the leader has runs, and so
// children to follow.
func (s *Set) NeedLeaderElection() bool { return true }

// Start runs the informers until ctx ends. It returns once all of them have stopped.
func (s *Set) Start(ctx context.Context) error {
	s.mu.Lock()
	s.started = true
	for _, informer := range s.informers {
		s.run(informer)
	}
	s.mu.Unlock()

	<-ctx.Done()

	s.mu.Lock()
	s.started = false
	for _, informer := range s.informers {
		informer.stop()
	}
	s.mu.Unlock()
	s.running.Wait()
	return nil
}

// Use returns the informer of key, and the function that ends this use. It starts the informer
// for its first user. The handler, which may be nil, gets an event for every existing object and
// then for each change, one at a time. A panic in the handler is logged, and loses that event.
func (s *Set) Use(key Key, handler toolscache.ResourceEventHandler) (informer *Informer, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	informer, ok := s.informers[key]
	if !ok {
		informer = newInformer(key, s.options)
		s.informers[key] = informer
		if s.started {
			s.run(informer)
		}
	}
	informer.users++
	removeHandler := informer.addHandler(handler)
	return informer, sync.OnceFunc(func() {
		removeHandler()
		s.release(informer)
	})
}

func (s *Set) release(informer *Informer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	informer.users--
	if informer.users == 0 {
		delete(s.informers, informer.key)
		informer.stop()
	}
}

// run starts an informer's goroutine. The caller must hold the lock.
func (s *Set) run(informer *Informer) {
	s.running.Go(informer.run)
}

// Keys returns the keys of the informers in use, in no order.
func (s *Set) Keys() []Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make([]Key, 0, len(s.informers))
	for key := range s.informers {
		keys = append(keys, key)
	}
	return keys
}

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

// Key names what an informer follows.
type Key struct {
	Resource schema.GroupVersionResource
	// Namespace is "" for all namespaces, and for what is cluster-scoped.
	Namespace string
}

func (k Key) String() string {
	return strings.TrimSuffix(k.Resource.GroupVersion().String()+" "+k.Resource.Resource+" in "+k.Namespace, " in ")
}

// State is what becomes of an informer.
type State string

const (
	// Starting is an informer that has not watched yet, or whose store is being filled
	// for the first time.
	Starting State = "starting"
	// Live is one whose watch is open and whose store has been filled: it notices
	// every change.
	Live State = "live"
	// Failing is one that was refused, or reached nobody, and is tried again; its store
	// may be on the way to being filled.
	Failing State = "failing"
	// Ended is one that nobody uses any more.
	Ended State = "ended"
)

// Options are the settings of a Set. Client is required.
type Options struct {
	Client dynamic.Interface
	// Transform makes what is kept out of what the API server sends; nil keeps
	// that. It is also called with its own results, which it must give back. Results
	// are found by meta.Accessor; a small type gives its metadata by GetObjectMeta.
	// An error, or a panic, loses the object: it must not be a way to filter.
	Transform func(any) (any, error)
	Logger    logr.Logger
	// Observe is told of each change of an informer's state, one at a time for each
	// informer. It must not call the Set.
	Observe func(Key, State)
}

// Set is a set of informers. It is a manager.Runnable: what is used before Start
// begins then.
type Set struct {
	options Options

	mu        sync.Mutex
	informers map[Key]*Informer
	working   bool
	running   sync.WaitGroup
}

// New returns a Set without informers.
func New(options Options) *Set {
	if options.Observe == nil {
		options.Observe = func(Key, State) {}
	}
	return &Set{options: options, informers: map[Key]*Informer{}}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: only the leader's
// runs have children.
func (s *Set) NeedLeaderElection() bool { return true }

// Start lets the informers work until ctx ends. When it returns, none does.
func (s *Set) Start(ctx context.Context) error {
	s.mu.Lock()
	s.working = true
	for _, informer := range s.informers {
		s.run(informer)
	}
	s.mu.Unlock()

	<-ctx.Done()

	s.mu.Lock()
	s.working = false
	for _, informer := range s.informers {
		informer.end()
	}
	s.mu.Unlock()
	s.running.Wait()
	return nil
}

// Use returns the informer of key, which begins now where it is the first use, and
// the function that ends the use. The handler, which may be nil, is told of every
// object that is there, and then of changes, one at a time. A panic in it is logged
// and loses that one event.
func (s *Set) Use(key Key, handler toolscache.ResourceEventHandler) (informer *Informer, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	informer, ok := s.informers[key]
	if !ok {
		informer = newInformer(key, s.options)
		s.informers[key] = informer
		if s.working {
			s.run(informer)
		}
	}
	informer.users++
	remove := informer.tell(handler)
	return informer, sync.OnceFunc(func() {
		remove()
		s.release(informer)
	})
}

func (s *Set) release(informer *Informer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	informer.users--
	if informer.users == 0 {
		delete(s.informers, informer.key)
		informer.end()
	}
}

// run needs the lock.
func (s *Set) run(informer *Informer) {
	s.running.Go(informer.run)
}

// Keys are those of the informers that are used, in no order.
func (s *Set) Keys() []Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make([]Key, 0, len(s.informers))
	for key := range s.informers {
		keys = append(keys, key)
	}
	return keys
}

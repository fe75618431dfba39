package informers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// remindInterval is how often the log says that a kind can't be followed.
const remindInterval = time.Minute

// errClosed is why an informer that met no error is not live.
var errClosed = errors.New("its watch is not open")

// Informer follows the objects of one resource, in one namespace or in all.
type Informer struct {
	key     Key
	log     logr.Logger
	observe func(Key, State)
	shared  toolscache.SharedIndexInformer
	stop    chan struct{}
	users   int // Guarded by the Set.

	mu       sync.Mutex
	state    State
	err      error
	reminded time.Time
}

func newInformer(key Key, options Options) *Informer {
	i := &Informer{
		key:     key,
		log:     options.Logger.WithValues("resource", key.Resource.GroupResource().String(), "version", key.Resource.Version, "namespace", key.Namespace),
		observe: options.Observe,
		stop:    make(chan struct{}),
		state:   Starting,
		err:     errClosed,
	}
	i.shared = toolscache.NewSharedIndexInformerWithOptions(
		toolscache.ToListWatcherWithWatchListSemantics((&source{i, options.Client.Resource(key.Resource).Namespace(key.Namespace)}).listWatch(), options.Client),
		&unstructured.Unstructured{},
		toolscache.SharedIndexInformerOptions{ObjectDescription: key.String()},
	)
	// Both are refused for started informers only. Errors have been told of by the
	// source when client-go comes to log them.
	_ = i.shared.SetWatchErrorHandlerWithContext(func(context.Context, *toolscache.Reflector, error) {})
	if options.Transform != nil {
		_ = i.shared.SetTransform(careful(options.Transform))
	}
	i.observe(key, Starting)
	return i
}

// Synced reports whether the store has held everything since some time. It may have
// fallen behind after that: see Err.
func (i *Informer) Synced() bool { return i.shared.HasSynced() }

// Err is why the store is not kept up to date at present: what the API server
// answered, or that no watch is open; nil while one is.
func (i *Informer) Err() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.err
}

// Store holds what the transform made of the objects. Nobody may change it. Its
// LastStoreSyncResourceVersion is one up to which it has seen every change: lists
// and watches fill it in the order of resource versions.
func (i *Informer) Store() toolscache.Indexer { return i.shared.GetIndexer() }

func (i *Informer) run() {
	ctx := klog.NewContext(wait.ContextForChannel(i.stop), i.log.V(1))
	var filling sync.WaitGroup
	filling.Go(i.awaitFill)
	i.shared.RunWithContext(ctx)
	filling.Wait()
}

// awaitFill notes when the store is filled: the watch may have opened long before.
func (i *Informer) awaitFill() {
	select {
	case <-i.stop:
		return
	case <-i.shared.HasSyncedChecker().Done():
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.err == nil {
		i.become(Live)
	}
}

// end may be called more than once, under the lock of the Set.
func (i *Informer) end() {
	select {
	case <-i.stop:
		return
	default:
	}
	close(i.stop)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.state, i.err = Ended, errClosed
	i.observe(i.key, Ended)
}

// tell adds a handler and returns what removes it.
func (i *Informer) tell(handler toolscache.ResourceEventHandler) (remove func()) {
	if handler == nil {
		return func() {}
	}
	registration, err := i.shared.AddEventHandler(guarded{handler, i.log})
	if err != nil {
		// Only an informer that has ended takes none, and it tells nothing any more.
		return func() {}
	}
	return func() {
		if err := i.shared.RemoveEventHandler(registration); err != nil {
			i.log.Error(err, "could not stop telling of a kind's changes")
		}
	}
}

// opened notes that a watch has begun.
func (i *Informer) opened() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.state == Ended {
		return
	}
	if !i.reminded.IsZero() {
		i.log.Info("the kind is followed again")
		i.reminded = time.Time{}
	}
	i.err = nil
	if i.Synced() {
		i.become(Live)
	}
}

// closed notes that a watch has ended, as each does now and then.
func (i *Informer) closed() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.err == nil {
		i.err = errClosed
	}
}

// failed notes that a list or watch could not be had.
func (i *Informer) failed(ctx context.Context, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.state == Ended || ctx.Err() != nil {
		return
	}
	i.err = err
	i.become(Failing)
	if time.Since(i.reminded) >= remindInterval {
		i.reminded = time.Now()
		i.log.Info("a kind can't be followed; it is tried again, and others are not affected", "error", err.Error(), "remedy", remedy(i.key, err))
	}
}

// become needs the lock. An informer that has ended becomes nothing any more.
func (i *Informer) become(state State) {
	if i.state != state && i.state != Ended {
		i.state = state
		i.observe(i.key, state)
	}
}

// careful makes an error of a panic, which would end the process.
func careful(transform func(any) (any, error)) func(any) (any, error) {
	return func(object any) (result any, err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic in a transform: %v", r)
			}
		}()
		return transform(object)
	}
}

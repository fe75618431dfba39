package informers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// logInterval is the shortest time between two log lines about one informer's failures.
const logInterval = time.Minute

// maxWatch is the longest time that an API server keeps a watch of client-go open, and more.
// A watch that is older does not work.
const maxWatch = 15 * time.Minute

// errNoWatch is the error of an informer without an open watch whose requests have not failed.
var errNoWatch = errors.New("its watch is not open")

// Informer follows the objects of one resource, in one namespace or in all of them.
type Informer struct {
	key           Key
	log           logr.Logger
	onStateChange func(Key, State)
	shared        toolscache.SharedIndexInformer
	stopped       chan struct{}
	users         int                                           // guarded by the Set's lock
	handlers      []toolscache.ResourceEventHandlerRegistration // guarded by mu

	mu         sync.Mutex
	state      State
	err        error
	opened     time.Time // the last watch
	lastLogged time.Time
}

func newInformer(key Key, options Options) *Informer {
	i := &Informer{
		key:           key,
		log:           options.Logger.WithValues("resource", key.Resource.GroupResource().String(), "version", key.Resource.Version, "namespace", key.Namespace),
		onStateChange: options.OnStateChange,
		stopped:       make(chan struct{}),
		state:         Starting,
		err:           errNoWatch,
	}
	i.shared = toolscache.NewSharedIndexInformerWithOptions(
		toolscache.ToListWatcherWithWatchListSemantics((&listerWatcher{i, options.Client.Resource(key.Resource).Namespace(key.Namespace)}).listWatch(), options.Client),
		&unstructured.Unstructured{},
		toolscache.SharedIndexInformerOptions{ObjectDescription: key.String(), Indexers: options.Indexers},
	)
	// Both calls fail only for a started informer. listerWatcher has reported an error before
	// client-go calls the handler, which would log it again.
	_ = i.shared.SetWatchErrorHandlerWithContext(func(context.Context, *toolscache.Reflector, error) {})
	if options.Transform != nil {
		_ = i.shared.SetTransform(recoverPanics(options.Transform))
	}
	i.onStateChange(key, Starting)
	return i
}

// Synced reports whether the store has been filled once. Err tells whether it is up to date.
func (i *Informer) Synced() bool { return i.shared.HasSynced() }

// Delivered reports whether the handlers have got every object with which the store was filled.
func (i *Informer) Delivered() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.Synced() && !slices.ContainsFunc(i.handlers, func(h toolscache.ResourceEventHandlerRegistration) bool { return !h.HasSynced() })
}

// Err returns nil while a watch is open. Otherwise it returns the API server's error, or that no
// watch is open.
func (i *Informer) Err() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.err
}

// Live reports whether the store is filled and a watch is open that brings it all changes.
func (i *Informer) Live() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.err == nil && time.Since(i.opened) < maxWatch && i.Synced()
}

// Store returns the store with the transformed objects. The caller must not change them. The
// store has seen every change up to its LastStoreSyncResourceVersion, because lists and watches
// fill it in the order of resource versions.
func (i *Informer) Store() toolscache.Indexer { return i.shared.GetIndexer() }

func (i *Informer) run() {
	ctx := klog.NewContext(wait.ContextForChannel(i.stopped), i.log.V(1))
	var syncing sync.WaitGroup
	syncing.Go(i.awaitSync)
	i.shared.RunWithContext(ctx)
	syncing.Wait()
}

// awaitSync sets the state once the store is filled. The watch may have been open long before.
func (i *Informer) awaitSync() {
	select {
	case <-i.stopped:
		return
	case <-i.shared.HasSyncedChecker().Done():
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.err == nil {
		i.setState(Live)
	}
}

// stop stops the informer. It may be called more than once. The caller must hold the lock of the
// Set.
func (i *Informer) stop() {
	select {
	case <-i.stopped:
		return
	default:
	}
	close(i.stopped)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.state, i.err = Ended, errNoWatch
	i.onStateChange(i.key, Ended)
}

// addHandler adds a handler and returns the function that removes it.
func (i *Informer) addHandler(handler toolscache.ResourceEventHandler) (remove func()) {
	if handler == nil {
		return func() {}
	}
	registration, err := i.shared.AddEventHandler(recoveringHandler{handler, i.log})
	if err != nil {
		// Only a stopped informer refuses a handler, and it has no more events.
		return func() {}
	}
	i.mu.Lock()
	i.handlers = append(i.handlers, registration)
	i.mu.Unlock()
	return func() {
		i.mu.Lock()
		i.handlers = slices.DeleteFunc(i.handlers, func(h toolscache.ResourceEventHandlerRegistration) bool { return h == registration })
		i.mu.Unlock()
		if err := i.shared.RemoveEventHandler(registration); err != nil {
			i.log.Error(err, "could not remove the event handler of a kind")
		}
	}
}

// watchOpened updates the state when a watch has begun.
func (i *Informer) watchOpened() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.state == Ended {
		return
	}
	if !i.lastLogged.IsZero() {
		i.log.Info("the kind is watched again")
		i.lastLogged = time.Time{}
	}
	i.err, i.opened = nil, time.Now()
	if i.Synced() {
		i.setState(Live)
	}
}

// watchClosed updates Err when a watch has ended. The state stays as it is, because every watch
// ends after some time, and client-go opens the next one.
func (i *Informer) watchClosed() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.err == nil {
		i.err = errNoWatch
	}
}

// requestFailed updates the state when a list or watch request has failed.
func (i *Informer) requestFailed(ctx context.Context, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.state == Ended || ctx.Err() != nil {
		return
	}
	i.err = err
	i.setState(Failing)
	if time.Since(i.lastLogged) >= logInterval {
		i.lastLogged = time.Now()
		i.log.Info("cannot watch the kind; retrying. Other kinds are not affected", "error", err.Error(), "remedy", remedy(i.key, err))
	}
}

// setState changes the state, unless the informer has ended. The caller must hold the lock.
func (i *Informer) setState(state State) {
	if i.state != state && i.state != Ended {
		i.state = state
		i.onStateChange(i.key, state)
	}
}

// recoverPanics returns a transform that returns an error where the given one panics.
func recoverPanics(transform func(any) (any, error)) func(any) (any, error) {
	return func(object any) (result any, err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic in a transform: %v", r)
			}
		}()
		return transform(object)
	}
}

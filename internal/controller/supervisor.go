package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kube-openapi/pkg/spec3"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// discoveryInterval is how often the API server is asked whether it still serves the kind.
	discoveryInterval = 30 * time.Second
	// maxAPIBackoff caps the pause after errors of the API server. It is short, because the CR does
	// not cause such an error: work goes on soon after the API server answers again.
	maxAPIBackoff = 10 * time.Second
	// logMissingInterval is how often the log says that a kind is still missing.
	logMissingInterval = time.Minute
	// syncInterval is how often a cache that is being filled is asked whether it is full.
	syncInterval = 50 * time.Millisecond
)

// Supervisor runs the controller of one watch while its kind is served. If the kind is
// missing, at the start or later, it asks again and again; other watches are not affected.
// It is a manager.Runnable and waits for leadership.
type Supervisor struct {
	// NewReconciler makes the reconciler for the time in which the kind is served; noStatus
	// is true if the kind has no status subresource.
	NewReconciler func(noStatus bool) *Reconciler
	GVK           schema.GroupVersionKind
	Cache         cache.Cache
	Discovery     Discovery
	// OpenAPI returns the schemas of a group's version; nil if they are not available.
	OpenAPI                 func(schema.GroupVersion) (*spec3.OpenAPI, error)
	MaxConcurrentReconciles int
	// Sources are further sources of events, whose requests name CRs that are to run again.
	Sources []Source
	Logger  logr.Logger
	// Recorded returns the CRs, with their UIDs, of which the content has records that do not go with
	// them; nil for content that has none.
	Recorded func(context.Context) (map[types.NamespacedName]types.UID, error)
	// Ready is called when the controller begins and stops to work.
	Ready func(gvk schema.GroupVersionKind, ready bool)

	// unready is why the controller does not work although its kind is served; nil if it
	// works, or if the kind is not served.
	unready atomic.Pointer[error]
	// reconciler is the current one; nil if there is none.
	reconciler atomic.Pointer[Reconciler]
}

// Resources returns how many CRs are in each phase; nil while the controller does not work.
func (s *Supervisor) Resources() map[Phase]int {
	if r := s.reconciler.Load(); r != nil {
		return r.Resources()
	}
	return nil
}

// Check is a readiness check: it fails while the kind is served and its cache is not
// filled. If the kind is missing, or this replica does not lead, it passes.
func (s *Supervisor) Check(*http.Request) error {
	if reason := s.unready.Load(); reason != nil {
		return *reason
	}
	return nil
}

// setUnready sets why the controller does not work.
func (s *Supervisor) setUnready(reason error) { s.unready.Store(&reason) }

// Start runs until ctx ends.
func (s *Supervisor) Start(ctx context.Context) error {
	pause := newPause()
	for ctx.Err() == nil {
		kind, ok := s.awaitKind(ctx)
		if !ok {
			break
		}
		err := s.serve(ctx, kind)
		s.Ready(s.GVK, false)
		if err != nil && ctx.Err() == nil {
			s.setUnready(fmt.Errorf("the controller of %s stopped and is started again: %w", s.GVK, err))
			s.Logger.Error(err, "the controller stopped; it is started again")
			sleep(ctx, pause.Step())
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// serve runs the controller until the kind is gone or ctx ends, and then removes its
// informer.
func (s *Supervisor) serve(ctx context.Context, kind servedKind) error {
	reconciler := s.NewReconciler(!kind.hasStatus)
	if !kind.hasStatus && reconciler.Watch.ManageStatus {
		s.Logger.Info("the kind has no status subresource: runs go on, but no conditions are written", "gvk", s.GVK.String())
	}
	c, err := s.newController(reconciler, kind)
	if err != nil {
		return err
	}
	s.reconciler.Store(reconciler)
	defer s.reconciler.Store(nil)
	ctx, cancel := s.whileServed(log.IntoContext(ctx, s.Logger))
	defer cancel(nil)
	s.setUnready(fmt.Errorf("the cache of %s is not filled yet; if this lasts, the account may lack the verbs list or watch for the kind: the log has the API server's answer", s.GVK))
	go s.awaitSync(ctx)
	go s.warnOfPaths(ctx, reconciler.Watch.References)
	err = c.Start(ctx)
	if removeErr := s.Cache.RemoveInformer(context.WithoutCancel(ctx), s.object()); removeErr != nil {
		s.Logger.Error(removeErr, "could not remove the informer of the kind")
	}
	return err
}

// whileServed returns a context that ends when the kind is no longer served: the CRs are gone then, and
// their runs are not wanted any more, also those that could outlive the manager.
func (s *Supervisor) whileServed(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		s.awaitRemoval(ctx)
		cancel(errGone)
	}()
	return ctx, cancel
}

func (s *Supervisor) newController(r *Reconciler, kind servedKind) (controller.TypedController[reconcile.Request], error) {
	skipNames := true // A kind that comes back gets a controller of the same name.
	c, err := controller.NewTypedUnmanaged(strings.ToLower(s.GVK.Kind+"."+s.GVK.Group), controller.TypedOptions[reconcile.Request]{
		Reconciler:              r,
		MaxConcurrentReconciles: s.MaxConcurrentReconciles,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, maxAPIBackoff),
		SkipNameValidation:      &skipNames,
		LogConstructor: func(req *reconcile.Request) logr.Logger {
			if req == nil {
				return s.Logger
			}
			return s.Logger.WithValues("object", strings.TrimPrefix(req.String(), "/"))
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make the controller of %s: %w", s.GVK, err)
	}
	err = c.Watch(source.Kind(singleKindCache{s.Cache}, s.object(), &handler{watch: &r.Watch, states: &r.states, related: r.Related, writers: r.Writers}, triggers(&r.Watch)))
	if err == nil && r.Related != nil {
		err = c.Watch(relatedSource{s, r, kind})
	}
	if err == nil && s.Recorded != nil {
		err = c.Watch(recordedSource{s, r})
	}
	for _, one := range s.Sources {
		err = errors.Join(err, c.Watch(authoredSource{s, r, one}))
	}
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", s.GVK, err)
	}
	return c, nil
}

// singleKindCache makes a source wait for its own kind only. Otherwise a source waits for all kinds
// of the cache, and a kind that cannot be listed would stop all watches. The source still waits
// until its handler has received all objects of its kind in the cache.
type singleKindCache struct{ cache.Cache }

// WaitForCacheSync implements cache.Cache.
func (singleKindCache) WaitForCacheSync(context.Context) bool { return true }

// awaitSync waits until the kind's cache is filled, and reports it.
func (s *Supervisor) awaitSync(ctx context.Context) {
	synced, err := s.synced(ctx)
	if err != nil {
		return // The controller's own start meets the same error and reports it.
	}
	if wait.PollUntilContextCancel(ctx, syncInterval, true, synced) == nil {
		s.unready.Store(nil)
		s.Ready(s.GVK, true)
		s.Logger.Info("watching", "gvk", s.GVK.String())
	}
}

// synced returns a condition that is true once the cache of the watched kind is filled.
func (s *Supervisor) synced(ctx context.Context) (wait.ConditionWithContextFunc, error) {
	informer, err := s.Cache.GetInformer(ctx, s.object(), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", s.GVK, err)
	}
	return func(context.Context) (bool, error) { return informer.HasSynced(), nil }, nil
}

// object returns an empty object of the watched kind.
func (s *Supervisor) object() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(s.GVK)
	return object
}

// newPause returns pauses that grow from 1 s to discoveryInterval.
func newPause() *wait.Backoff {
	return &wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 30, Cap: discoveryInterval}
}

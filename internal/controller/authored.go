package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrlhandler "sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ensign-operator/ensign/internal/controller/slots"
)

// Source is a source of events that a program's author gives a watch. Its requests name CRs.
type Source = source.TypedSource[reconcile.Request]

// authoredSource makes the CRs run again that a Source names. The requests of objects that have
// not changed, those of the first list and of a resync, have the low priority of
// controller-runtime, and change nothing: an event does not say what an earlier manager's run saw.
//
// It does not wait for the source's cache, so that a kind that cannot be listed stops no watch.
type authoredSource struct {
	*Supervisor
	*Reconciler
	Source
}

func (s authoredSource) String() string {
	return strings.TrimPrefix(fmt.Sprint(s.Source), "kind source: ")
}

// Start implements source.Source.
func (s authoredSource) Start(ctx context.Context, q queue) error {
	priorities, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
	if !ok {
		return errors.New("the controller's queue has no priorities")
	}
	synced, err := s.synced(ctx)
	if err != nil {
		return err
	}
	return s.Source.Start(ctx, marking{priorities, func(req reconcile.Request) bool {
		if wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, synced) != nil {
			return false
		}
		cr := s.cached(ctx, req.NamespacedName)
		return cr != nil && cr.GetDeletionTimestamp() == nil && s.states.of(req.NamespacedName).mailbox.markDirty(causeRelated+s.String())
	}})
}

// synced returns a condition that is true once the cache of the watched kind is filled.
func (s *Supervisor) synced(ctx context.Context) (wait.ConditionWithContextFunc, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(s.GVK)
	informer, err := s.Cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", s.GVK, err)
	}
	return func(context.Context) (bool, error) { return informer.HasSynced(), nil }, nil
}

// marking is the queue that a Source gets. It takes a request where mark has made its CR dirty.
type marking struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	mark func(reconcile.Request) bool
}

// Add implements workqueue.TypedInterface.
func (q marking) Add(req reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, req) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (q marking) AddAfter(req reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, req)
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q marking) AddRateLimited(req reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, req)
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q marking) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	if o.Priority != nil && *o.Priority == ctrlhandler.LowPriority {
		return
	}
	o.Priority = queuePriority(slots.Changed)
	for _, req := range requests {
		if q.mark(req) {
			q.PriorityQueue.AddWithOpts(o, req)
		}
	}
}

package controller

import (
	"context"

	libhandler "github.com/operator-framework/operator-lib/handler"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/slots"
	"github.com/ensign-operator/ensign/internal/watches"
)

type (
	crCreated = event.TypedCreateEvent[*unstructured.Unstructured]
	crUpdated = event.TypedUpdateEvent[*unstructured.Unstructured]
	crDeleted = event.TypedDeleteEvent[*unstructured.Unstructured]
	queue     = workqueue.TypedRateLimitingInterface[reconcile.Request]
)

// enqueue puts CRs into the queue of which an event has news, the pressing ones
// first, keeps operator-lib's metric of them, and ends the runs of CRs that are
// deleted.
type enqueue struct {
	libhandler.InstrumentedEnqueueRequestForObject[*unstructured.Unstructured]
	watch    *watches.Watch
	memories *memories
	// related learns to what CRs refer; may be nil.
	related Related
}

// Create puts a new CR, or one that was there at the start, into the queue.
func (h *enqueue) Create(ctx context.Context, e crCreated, q queue) {
	warnOfAnnotations(ctx, nil, e.Object)
	h.refers(e.Object)
	seen := h.sight(e.Object)
	news := h.memories.saw(e.Object, seen, aCreation)
	h.InstrumentedEnqueueRequestForObject.Create(ctx, e, places(q, news, seen.class))
}

// Update cancels the run of a CR that is being deleted, unless our finalizer
// waits for that run's end, and of one that is followed by another object of its
// name: the end of the one and the creation of the other may be told at once.
func (h *enqueue) Update(ctx context.Context, e crUpdated, q queue) {
	h.refers(e.ObjectNew)
	seen, how, before := h.sight(e.ObjectNew), aChange, e.ObjectOld
	if replaced(e) {
		h.memories.lost(e.ObjectOld)
		how, before = aCreation, nil
	}
	warnOfAnnotations(ctx, before, e.ObjectNew)
	news := h.memories.saw(e.ObjectNew, seen, how)
	if seen.idle && e.ObjectNew.GetDeletionTimestamp() != nil {
		h.memories.deleted(e.ObjectNew)
	}
	h.InstrumentedEnqueueRequestForObject.Update(ctx, e, places(q, news, seen.class))
}

// Delete ends the run of a CR that is gone.
func (h *enqueue) Delete(ctx context.Context, e crDeleted, q queue) {
	if h.related != nil && len(h.watch.References) > 0 {
		h.related.Refers(h.watch.GVK, client.ObjectKeyFromObject(e.Object), nil)
	}
	news := h.memories.lost(e.Object)
	h.InstrumentedEnqueueRequestForObject.Delete(ctx, e, places(q, news, slots.Usual))
}

// warnOfAnnotations logs annotations that seem to steer runs and do not, when they first
// appear. There may be thousands of them.
func warnOfAnnotations(ctx context.Context, before, cr *unstructured.Unstructured) {
	const limit = 5
	unknown := unknownAnnotations(before, cr)
	if unknown == nil {
		return
	}
	log.FromContext(ctx).Info("WARNING: annotations with the operator's prefix have no effect, because it knows none of these names", "cr", client.ObjectKeyFromObject(cr).String(),
		"annotations", unknown[:min(len(unknown), limit)], "number", len(unknown), "nearest", watches.Closest(unknown[0], knownAnnotations()))
}

// refers tells to what a CR refers, before anything is run for it.
func (h *enqueue) refers(cr *unstructured.Unstructured) {
	if h.related != nil && len(h.watch.References) > 0 {
		h.related.Refers(h.watch.GVK, client.ObjectKeyFromObject(cr), keptReferences(h.watch.References, cr))
	}
}

// sight says what can be seen of the CR in the cache.
func (h *enqueue) sight(cr *unstructured.Unstructured) sight {
	observed, _, _ := unstructured.NestedInt64(cr.Object, "status", "observedGeneration")
	switch {
	case cr.GetDeletionTimestamp() != nil:
		return sight{idle: !holdsFinalizer(h.watch, cr), class: slots.Urgent}
	case paused(cr):
		return sight{idle: true, class: slots.Usual}
	case refusedAnnotations(cr) != nil:
		return sight{idle: true, class: slots.Changed}
	case observed != cr.GetGeneration():
		return sight{class: slots.Changed}
	default:
		return sight{class: slots.Usual}
	}
}

// places gives news the place of its class in the queue, and what is no news none.
// A queue without priorities stays as it is.
func places(q queue, news bool, class slots.Class) queue {
	if !news {
		return closed{q}
	}
	prioritized, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
	if !ok {
		return q
	}
	return ordered{prioritized, priority(class)}
}

// closed takes nothing into the queue.
type closed struct{ queue }

// Add implements workqueue.TypedInterface.
func (closed) Add(reconcile.Request) {}

// ordered overrules the priorities of controller-runtime, which puts all that was
// there at the start last.
type ordered struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	priority *int
}

// Add implements workqueue.TypedInterface.
func (o ordered) Add(req reconcile.Request) {
	o.AddWithOpts(priorityqueue.AddOpts{}, req)
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (o ordered) AddWithOpts(opts priorityqueue.AddOpts, requests ...reconcile.Request) {
	opts.Priority = o.priority
	o.PriorityQueue.AddWithOpts(opts, requests...)
}

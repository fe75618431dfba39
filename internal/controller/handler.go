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

	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/watches"
)

type (
	crCreated = event.TypedCreateEvent[*unstructured.Unstructured]
	crUpdated = event.TypedUpdateEvent[*unstructured.Unstructured]
	crDeleted = event.TypedDeleteEvent[*unstructured.Unstructured]
	queue     = workqueue.TypedRateLimitingInterface[reconcile.Request]
)

// handler puts every CR of which an event tells into the queue, the pressing ones first.
// It interrupts the attempt that waits for a slot for the CR, and ends the run of a CR
// that goes. An event that is late, repeated or wrong costs a read of the CR.
type handler struct {
	libhandler.InstrumentedEnqueueRequestForObject[*unstructured.Unstructured]
	watch  *watches.Watch
	states *states
	// related learns to what CRs refer; may be nil.
	related Related
}

// Create implements handler.TypedEventHandler.
func (h *handler) Create(ctx context.Context, e crCreated, q queue) {
	warnOfAnnotations(ctx, nil, e.Object)
	h.refers(e.Object)
	h.tell(e.Object, nil)
	h.InstrumentedEnqueueRequestForObject.Create(ctx, e, withPriority(q, classOf(e.Object)))
}

// Update implements handler.TypedEventHandler. An object may have been followed by another
// of its name since the last event, and a CR that gains the selector's labels runs even
// if this version of it ran before it lost them. An attempt may have read what events
// never show, so that an update that changes nothing counts where the state has not seen
// that version run.
func (h *handler) Update(ctx context.Context, e crUpdated, q queue) {
	h.refers(e.ObjectNew)
	name, before := client.ObjectKeyFromObject(e.ObjectNew), e.ObjectOld
	news := true
	switch {
	case replaced(e):
		h.tell(e.ObjectOld, errGone)
		before = nil
	case !concerns(h.watch, e.ObjectOld):
		h.states.markDirty(name, causeSelected)
	default:
		news = changed(h.watch, e.ObjectOld, e.ObjectNew)
	}
	warnOfAnnotations(ctx, before, e.ObjectNew)
	if !news && !h.states.misses(name, versionOf(h.watch, e.ObjectNew)) {
		return
	}
	var end error
	if e.ObjectNew.GetDeletionTimestamp() != nil && !holdsFinalizer(h.watch, e.ObjectNew) {
		end = errDeleted
	}
	if news {
		h.tell(e.ObjectNew, end)
	}
	h.InstrumentedEnqueueRequestForObject.Update(ctx, e, withPriority(q, classOf(e.ObjectNew)))
}

// Delete implements handler.TypedEventHandler.
func (h *handler) Delete(ctx context.Context, e crDeleted, q queue) {
	if h.related != nil && len(h.watch.References) > 0 {
		h.related.Refers(h.watch.GVK, client.ObjectKeyFromObject(e.Object), nil)
	}
	h.tell(e.Object, errGone)
	h.InstrumentedEnqueueRequestForObject.Delete(ctx, e, withPriority(q, slots.Usual))
}

func (h *handler) tell(cr *unstructured.Unstructured, end error) {
	h.states.tell(client.ObjectKeyFromObject(cr), news{uid: cr.GetUID(), end: end})
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
func (h *handler) refers(cr *unstructured.Unstructured) {
	if h.related != nil && len(h.watch.References) > 0 {
		h.related.Refers(h.watch.GVK, client.ObjectKeyFromObject(cr), keptReferences(h.watch.References, cr))
	}
}

// classOf is how pressing the CR is, as it or its reduced copy in the cache shows it.
func classOf(cr *unstructured.Unstructured) slots.Class {
	observed, _, _ := unstructured.NestedInt64(cr.Object, "status", "observedGeneration")
	switch {
	case cr.GetDeletionTimestamp() != nil:
		return slots.Urgent
	case observed != cr.GetGeneration():
		return slots.Changed
	default:
		return slots.Usual
	}
}

// withPriority gives what is added to the queue the priority of its class. A queue
// without priorities stays as it is.
func withPriority(q queue, class slots.Class) queue {
	prioritized, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
	if !ok {
		return q
	}
	return ordered{prioritized, priority(class)}
}

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

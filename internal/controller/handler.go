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
	"github.com/ensign-operator/ensign/internal/suggest"
	"github.com/ensign-operator/ensign/internal/watches"
)

type (
	crCreated = event.TypedCreateEvent[*unstructured.Unstructured]
	crUpdated = event.TypedUpdateEvent[*unstructured.Unstructured]
	crDeleted = event.TypedDeleteEvent[*unstructured.Unstructured]
	queue     = workqueue.TypedRateLimitingInterface[reconcile.Request]
)

// handler puts the CR of an event into the queue, with its priority. It
// interrupts an attempt that waits for a slot for the CR, and ends the run of a CR that is
// deleted. An event that is late, repeated or wrong costs one read of the CR.
type handler struct {
	libhandler.InstrumentedEnqueueRequestForObject[*unstructured.Unstructured]
	watch  *watches.Watch
	states *states
	// related is told to what objects CRs refer; may be nil.
	related Related
	// writers is told what events show; may be nil.
	writers *Writers
}

// Create implements handler.TypedEventHandler.
func (h *handler) Create(ctx context.Context, e crCreated, q queue) {
	h.warnOfAnnotations(ctx, nil, e.Object)
	h.writers.See(h.watch, e.Object)
	setReferences(h.related, h.watch, client.ObjectKeyFromObject(e.Object), e.Object)
	h.states.of(client.ObjectKeyFromObject(e.Object)) // Counted from now on.
	h.notify(e.Object, nil)
	h.InstrumentedEnqueueRequestForObject.Create(ctx, e, withPriority(q, priorityOf(e.Object)))
}

// Update implements handler.TypedEventHandler.
//
//   - The event may be about two objects of the same name: the old one was deleted and the
//     new one created since the last event.
//   - A CR that gains the labels of the selector runs, even if this version of it ran before
//     it lost them. One that loses them is read once more, and then counted no more.
//   - A CR that begins to refer to an object, as its status may after a run, runs: the object may have
//     changed before its changes brought this CR back.
//   - An update that changes nothing counts if content has not run for its version: the
//     version's own event may have ended the wait of an attempt that read an older one.
func (h *handler) Update(ctx context.Context, e crUpdated, q queue) {
	h.writers.See(h.watch, e.ObjectNew)
	name, before := client.ObjectKeyFromObject(e.ObjectNew), e.ObjectOld
	setReferences(h.related, h.watch, name, e.ObjectNew)
	relevant := true
	switch {
	case replaced(e):
		h.notify(e.ObjectOld, errGone)
		before = nil
	case !isWatched(h.watch, e.ObjectNew): // It was until now.
	case !isWatched(h.watch, e.ObjectOld):
		h.states.of(name).mailbox.markDirty(causeSelected)
	default:
		relevant = changed(h.watch, e.ObjectOld, e.ObjectNew) || h.markReferred(e)
	}
	h.warnOfAnnotations(ctx, before, e.ObjectNew)
	if cancels(h.watch, before, e.ObjectNew) {
		h.notify(e.ObjectNew, errCanceled)
	}
	if !relevant && !h.states.mailboxOf(name).needsRun(versionOf(h.watch, e.ObjectNew)) {
		return
	}
	var end error
	switch deleting := e.ObjectNew.GetDeletionTimestamp() != nil; {
	case deleting && !holdsFinalizer(h.watch, e.ObjectNew):
		end = errDeleted
	case abandoned(h.watch, e.ObjectNew):
		end = errAbandoned
	case deleting && h.watch.ContentKind().CanBeInterrupted:
		end = errSuperseded
	}
	if relevant {
		h.notify(e.ObjectNew, end)
	}
	h.InstrumentedEnqueueRequestForObject.Update(ctx, e, withPriority(q, priorityOf(e.ObjectNew)))
}

// Delete implements handler.TypedEventHandler.
func (h *handler) Delete(ctx context.Context, e crDeleted, q queue) {
	setReferences(h.related, h.watch, client.ObjectKeyFromObject(e.Object), nil)
	h.notify(e.Object, errGone)
	h.InstrumentedEnqueueRequestForObject.Delete(ctx, e, withPriority(q, slots.Normal))
}

// markReferred marks a CR dirty that refers to an object to which it did not refer before. It reports
// whether it has.
func (h *handler) markReferred(e crUpdated) bool {
	if len(h.watch.References) == 0 || e.ObjectNew.GetDeletionTimestamp() != nil {
		return false
	}
	added := newReference(h.watch.References, e.ObjectOld, e.ObjectNew)
	return added != "" && h.states.of(client.ObjectKeyFromObject(e.ObjectNew)).mailbox.markDirty(causeRelated+added+" is referred to now")
}

func (h *handler) notify(cr *unstructured.Unstructured, end error) {
	h.states.mailboxOf(client.ObjectKeyFromObject(cr)).notify(signal{uid: cr.GetUID(), end: end})
}

// warnOfAnnotations logs annotations that have the operator's prefix and an unknown name,
// when they first appear. It shows the first ones: there may be thousands.
func (h *handler) warnOfAnnotations(ctx context.Context, before, cr *unstructured.Unstructured) {
	const limit = 5
	unknown := unknownAnnotations(h.watch, before, cr)
	if unknown == nil {
		return
	}
	log.FromContext(ctx).Info("WARNING: these annotations have the operator's prefix, but unknown names, so they have no effect; correct the names", "cr", client.ObjectKeyFromObject(cr).String(),
		"annotations", unknown[:min(len(unknown), limit)], "number", len(unknown), "nearest", suggest.Closest(unknown[0], h.watch.Annotations()))
}

// priorityOf returns the priority of a CR, or of its stripped copy in the cache.
func priorityOf(cr *unstructured.Unstructured) slots.Priority {
	observed, _, _ := unstructured.NestedInt64(cr.Object, "status", "observedGeneration")
	switch {
	case cr.GetDeletionTimestamp() != nil:
		return slots.Urgent
	case observed != cr.GetGeneration():
		return slots.Changed
	default:
		return slots.Normal
	}
}

// withPriority returns a queue that gives the priority to all that is added.
// A queue without priorities is returned as it is.
func withPriority(q queue, p slots.Priority) queue {
	pq, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
	if !ok {
		return q
	}
	return prioritized{pq, queuePriority(p)}
}

// prioritized gives its own priority to all that is added. controller-runtime would give
// the lowest one to all CRs that exist when the manager starts.
type prioritized struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	priority *int
}

// Add implements workqueue.TypedInterface.
func (o prioritized) Add(req reconcile.Request) {
	o.AddWithOpts(priorityqueue.AddOpts{}, req)
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (o prioritized) AddWithOpts(opts priorityqueue.AddOpts, requests ...reconcile.Request) {
	opts.Priority = o.priority
	o.PriorityQueue.AddWithOpts(opts, requests...)
}

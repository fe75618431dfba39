package controller

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"

	libhandler "github.com/operator-framework/operator-lib/handler"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/suggest"
	"github.com/ensign-operator/ensign/internal/watches"
)

// digestField of a stripped object holds the digest of its content, if the kind has no
// generations by which changes are found.
const digestField = "ensignDigest"

// StripTransform returns the transform of the cache of the watched kinds. An attempt reads its CR live;
// the cache only serves the events. The transform keeps the fields that they need: identity,
// labels, annotations, generation, deletion, finalizers, the observed generation, and the
// references of the CR.
func StripTransform(list ...watches.Watch) func(object any) (any, error) {
	references := map[schema.GroupVersionKind][]watches.Reference{}
	for _, watch := range list {
		references[watch.GVK] = watch.References
	}
	return func(object any) (any, error) {
		full, ok := object.(*unstructured.Unstructured)
		if !ok || full.Object[strippedField] != nil {
			return object, nil
		}
		stripped, err := strip(full)
		if err != nil {
			return nil, err
		}
		noteReferences(references[full.GroupVersionKind()], full, stripped)
		return stripped, nil
	}
}

// strippedField is set in a stripped object: a reflector that gets its first list as a watch transforms each
// object twice. No object of the API server has a field of that name.
var strippedField = "stripped-" + rand.Text() //nolint:gochecknoglobals // It is a constant of the process.

func strip(full *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	stripped := &unstructured.Unstructured{Object: map[string]any{strippedField: true}}
	stripped.SetGroupVersionKind(full.GroupVersionKind())
	stripped.SetNamespace(full.GetNamespace())
	stripped.SetName(full.GetName())
	stripped.SetUID(full.GetUID())
	stripped.SetResourceVersion(full.GetResourceVersion())
	stripped.SetCreationTimestamp(full.GetCreationTimestamp())
	stripped.SetDeletionTimestamp(full.GetDeletionTimestamp())
	stripped.SetLabels(full.GetLabels())
	stripped.SetFinalizers(full.GetFinalizers())
	annotations := full.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	stripped.SetAnnotations(annotations)
	if observed, ok, _ := unstructured.NestedInt64(full.Object, "status", "observedGeneration"); ok {
		stripped.Object["status"] = map[string]any{"observedGeneration": observed}
	}
	if generation := full.GetGeneration(); generation != 0 {
		stripped.SetGeneration(generation)
		return stripped, nil
	}
	digest, err := contentDigest(full)
	if err != nil {
		return nil, err
	}
	stripped.Object[digestField] = digest
	return stripped, nil
}

func contentDigest(full *unstructured.Unstructured) (string, error) {
	content := maps.Clone(full.Object)
	delete(content, "metadata")
	delete(content, "status")
	data, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	return digestOfText(string(data)), nil
}

// triggers lets the events of the CRs pass that concern the watch, and all deletions. The
// handler decides which of their changes count.
func triggers(watch *watches.Watch) predicate.TypedPredicate[*unstructured.Unstructured] {
	return predicate.TypedFuncs[*unstructured.Unstructured]{
		CreateFunc: func(e event.TypedCreateEvent[*unstructured.Unstructured]) bool {
			return isWatched(watch, e.Object)
		},
		UpdateFunc: func(e event.TypedUpdateEvent[*unstructured.Unstructured]) bool {
			return replaced(e) || isWatched(watch, e.ObjectNew) || isWatched(watch, e.ObjectOld)
		},
		GenericFunc: func(e event.TypedGenericEvent[*unstructured.Unstructured]) bool {
			return isWatched(watch, e.Object)
		},
	}
}

// isWatched reports whether the CR matches the watch's selector, or is being deleted and
// still has the watch's finalizer.
func isWatched(watch *watches.Watch, cr *unstructured.Unstructured) bool {
	if watch.Selector.Matches(labels.Set(cr.GetLabels())) {
		return true
	}
	return cr.GetDeletionTimestamp() != nil && holdsFinalizer(watch, cr)
}

func holdsFinalizer(watch *watches.Watch, cr *unstructured.Unstructured) bool {
	return watch.Finalizer != nil && slices.ContainsFunc(cr.GetFinalizers(), watch.Finalizer.Is)
}

// replaced reports whether the update is about two objects of one name: the old one was
// deleted and the new one created while the watch missed both events.
func replaced(e crUpdated) bool { return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() }

// changed reports whether the update changes the version of the CR.
func changed(watch *watches.Watch, before, after *unstructured.Unstructured) bool {
	return versionOf(watch, before) != versionOf(watch, after)
}

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
	now := versionOf(h.watch, e.ObjectNew)
	if !relevant && !h.states.mailboxOf(name).needsRun(now) {
		return
	}
	var end *interruption
	switch {
	case now.deleting && !holdsFinalizer(h.watch, e.ObjectNew):
		end = errDeleted
	case now.abandoned:
		end = errAbandoned
	case now.deleting && h.watch.ContentKind().CanBeInterrupted:
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

func (h *handler) notify(cr *unstructured.Unstructured, end *interruption) {
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

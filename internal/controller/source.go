package controller

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
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

// address ends the names of sources that are a channel or a function: it says nothing to anybody,
// and is another one after each start.
var address = regexp.MustCompile(`: 0x[0-9a-f]+$`)

func (s authoredSource) String() string {
	return address.ReplaceAllString(strings.TrimPrefix(fmt.Sprint(s.Source), "kind source: "), "")
}

// Start implements source.Source.
func (s authoredSource) Start(ctx context.Context, q queue) error {
	priorities, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
	if !ok {
		return errors.New("the controller's queue has no priorities")
	}
	mark, err := s.marker(ctx, &s.states)
	if err != nil {
		return err
	}
	return s.Source.Start(ctx, marking{priorities, func(req reconcile.Request) bool {
		return mark(req.NamespacedName, "", s.String())
	}})
}

// relatedSource makes requests of the changes of CRs' related objects.
type relatedSource struct {
	*Supervisor
	*Reconciler

	kind servedKind
}

func (n relatedSource) String() string { return "related objects" }

// Start implements source.Source.
func (n relatedSource) Start(ctx context.Context, q queue) error {
	mark, err := n.marker(ctx, &n.states)
	if err != nil {
		return err
	}
	q = withPriority(q, slots.Changed)
	n.Related.Subscribe(ctx, Scope{n.GVK, n.kind.namespaced}, func(name types.NamespacedName, uid types.UID, what string, current int) {
		n.states.mailboxOf(name).noteCurrent(current)
		if marked := what != "" && mark(name, uid, what); marked || what == "" || current > 0 { // Health alone leads to a look, and to no run.
			q.Add(reconcile.Request{NamespacedName: name})
		}
	})
	return nil
}

// marker returns a function that marks a CR as dirty because of another object. It reports whether
// the caller must put the CR into the queue. It first waits until the cache of the CRs is filled. A
// CR that is not there, has another UID, or is being deleted, is not marked; the UID "" is any.
func (s *Supervisor) marker(ctx context.Context, all *states) (func(name types.NamespacedName, uid types.UID, what string) bool, error) {
	synced, err := s.synced(ctx)
	if err != nil {
		return nil, err
	}
	return func(name types.NamespacedName, uid types.UID, what string) bool {
		cr := s.object()
		if wait.PollUntilContextCancel(ctx, syncInterval, true, synced) != nil || s.Cache.Get(ctx, name, cr) != nil {
			return false
		}
		return (uid == "" || uid == cr.GetUID()) && cr.GetDeletionTimestamp() == nil && all.of(name).mailbox.markDirty(causeRelated+what)
	}, nil
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

package controller

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/ansible/engine"
	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/internal/watches"
)

// boss is one manager: a reconciler with a queue, a worker and an informer.
type boss struct {
	reconciler *Reconciler
	view       *view
	gates      *gates
	cancel     func()
	ended      chan struct{} // closed when the worker has ended
	leads      atomic.Bool
	attempts   atomic.Int64

	// gained is true when an event told that the CR gained its labels: it may come after a
	// run that has seen them, and cost another one.
	gained atomic.Bool
	// settled is the CR as the manager found it at its start, if it was to rest.
	settled *unstructured.Unstructured
}

func newBoss(server *apiServer, watch watches.Watch, stage engine.Runner, access Access) *boss {
	b := &boss{gates: &gates{admit: make(chan struct{})}, ended: make(chan struct{})}
	b.leads.Store(true)
	b.reconciler = &Reconciler{
		Watch: watch, Client: server, Reader: server, Content: &engine.Engine{Watch: watch, Runner: stage, Defaults: engine.Defaults{MaxVerbosity: 2}}, Access: access, Recorder: events.NewFakeRecorder(10_000),
		Attempts: NewAttempts(), Slots: b.gates, Digest: "d", Clock: clock.RealClock{}, Fence: b.leads.Load, Writers: NewWriters(),
		Defaults: Defaults{MaxBackoff: 20 * time.Second},
	}
	q := priorityqueue.New("model", func(o *priorityqueue.Opts[reconcile.Request]) {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, maxAPIBackoff)
	})
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = func() { q.ShutDown(); cancel() }
	b.view = &view{server: server, handler: &handler{watch: &b.reconciler.Watch, states: &b.reconciler.states, writers: b.reconciler.Writers}, queue: q, gained: func() { b.gained.Store(true) }}
	go b.work(ctx, q)
	return b
}

// list is the first look at the kind, with all but so many moments of its history.
func (b *boss) list(ctx context.Context, behind int) {
	b.view.advance(ctx, b.view.behind()-behind, true)
	cr := b.view.server.now()
	if b.view.cached == nil || cr == nil || behind > 0 {
		return
	}
	if _, ok := status.SucceededWith(cr, b.reconciler.digestOf(versionOf(&b.reconciler.Watch, cr))); ok {
		b.settled = cr
	}
}

// informed is true where events have told all that the manager can know.
func (b *boss) informed() bool {
	known := b.reconciler.states.byName[request.NamespacedName]
	return b.view.behind() == 0 && (known == nil || known.state.version.uid == "" || slices.Contains(b.view.uids, known.state.version.uid))
}

// drift does what a related object's event does. It is false where nobody is told.
func (b *boss) drift() bool {
	if cr := b.view.cached; cr == nil || cr.GetDeletionTimestamp() != nil {
		return false
	}
	if b.reconciler.states.of(request.NamespacedName).mailbox.markDirty(causeRelated + "Secret ns/s changed") {
		b.view.queue.Add(request)
	}
	return true
}

// work does what a controller does with its queue.
func (b *boss) work(ctx context.Context, q priorityqueue.PriorityQueue[reconcile.Request]) {
	defer close(b.ended)
	for {
		req, _, stopped := q.GetWithPriority()
		if stopped {
			return
		}
		b.attempts.Add(1)
		result, err := b.reconciler.Reconcile(ctx, req)
		switch {
		case err != nil:
			q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, req)
		case result.RequeueAfter > 0:
			q.Forget(req)
			q.AddWithOpts(priorityqueue.AddOpts{After: result.RequeueAfter, Priority: result.Priority}, req)
		default:
			q.Forget(req)
		}
		q.Done(req)
	}
}

// end stops the manager, or kills it: then it writes nothing more.
func (b *boss) end(kill bool) {
	if kill {
		b.leads.Store(false)
	}
	b.reconciler.Attempts.Stop()
	b.view.server.hurry()
	_ = b.reconciler.Attempts.Wait(context.Background())
	b.cancel()
	<-b.ended
}

// gates are slots that are given by hand.
type gates struct {
	admit chan struct{}

	mu      sync.Mutex
	waiting bool
	open    bool // to everybody
	// sloppy gates admit who leaves in the same moment.
	sloppy bool
}

// Acquire implements Slots.
func (g *gates) Acquire(ctx context.Context, _ schema.GroupVersionKind, _ slots.Priority) (func(), bool, error) {
	free := func() {}
	if g.enter() {
		return free, false, nil
	}
	var err error
	select {
	case <-g.admit:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if g.leave() {
		err = nil
	}
	return free, true, err
}

func (g *gates) enter() (open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = !g.open
	return g.open
}

func (g *gates) leave() (sloppy bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = false
	return g.sloppy
}

func (g *gates) waits() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting
}

func (g *gates) set(open, sloppy bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open, g.sloppy = open, sloppy
}

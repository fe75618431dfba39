package trial

import (
	"context"
	"net/http"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/faults/fault"
	"github.com/ensign-operator/ensign/test/faults/plan"
)

// crash kills the manager and starts another at once.
func (t *trial) crash() {
	t.note(t.managers.kill())
	t.note(t.managers.start())
	t.finish()
}

// freeze lets the API server take every request and answer none.
func (t *trial) freeze() {
	thawed := make(chan struct{})
	remove := t.proxy.Add(apiproxy.Rule{
		Match: func(apiproxy.Request) bool { return true },
		Fault: apiproxy.Fault{Before: func(apiproxy.Request) { <-thawed }},
	})
	t.later(func() {
		remove()
		close(thawed)
	})
}

// blind keeps from the manager what happens to the kind.
func (t *trial) blind(ctx context.Context) {
	keep := t.proxy.Hold
	if t.plan.Fault == plan.Hidden {
		keep = t.proxy.Hide
	}
	release := keep(t.ours)
	t.touch(ctx)
	t.later(release)
}

// race is another writer's change between the manager's read and its write.
func (t *trial) race(ctx context.Context) {
	switch t.plan.Point {
	case plan.FinalizerAdd:
		t.note(t.user.patch(ctx, `{"metadata": {"finalizers": [%q]}}`, rivalFinalizer))
	case plan.FinalizerRemove: // What is being deleted takes no new finalizer.
		t.note(t.user.patch(ctx, `{"metadata": {"labels": {"race": "lost"}}}`))
	default:
		t.note(t.user.rivalSetsCondition(ctx))
	}
	t.finish()
	if t.plan.Point == plan.FinalizerAdd && t.plan.Operation == plan.DeleteRunning {
		go func() { t.note(t.user.rivalLetsGo(context.WithoutCancel(ctx))) }()
	}
}

// refuseAll lets all requests about the kind and its Events fail, but no watches.
// What is lost or conflicts are writes.
func (t *trial) refuseAll() {
	writesOnly := t.plan.Fault == plan.Lost || t.plan.Fault == plan.Conflict
	t.later(t.proxy.Add(apiproxy.Rule{
		Match: func(r apiproxy.Request) bool {
			return r.Verb != "watch" && (r.Write() || !writesOnly) && (t.ours(r) || r.Resource == "events")
		},
		Fault: fault.Refusal(t.plan.Fault),
	}))
}

// crashIntoThePast kills the manager and starts one that sees the kind as it was
// before the operation, until the fault is over.
func (t *trial) crashIntoThePast() {
	t.note(t.managers.kill())
	about := func(verb string) func(apiproxy.Request) bool {
		return func(r apiproxy.Request) bool { return r.Verb == verb && t.ours(r) && r.Name == "" }
	}
	streamed := t.proxy.Add(apiproxy.Rule{
		Match: func(r apiproxy.Request) bool { return about("watch")(r) && r.Query["sendInitialEvents"] != nil },
		Fault: apiproxy.Refuse(http.StatusUnprocessableEntity),
	})
	listed := t.proxy.Add(apiproxy.Rule{
		// A list without a version is read from etcd, and so never stale.
		Match: func(r apiproxy.Request) bool { return about("list")(r) && len(r.Query["resourceVersion"]) > 0 },
		Fault: apiproxy.Fault{Withhold: true, Code: http.StatusOK, Body: t.snapshot},
	})
	release := t.proxy.Hold(about("watch"))
	t.note(t.managers.start())
	t.later(func() {
		streamed()
		listed()
		release()
	})
}

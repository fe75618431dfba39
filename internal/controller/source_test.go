package controller

import (
	"context"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	ctrlhandler "sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/controller/status"
)

func TestASourceOfTheAuthor(t *testing.T) {
	const news = "related: something of the author's"
	create := func(initial bool) func(context.Context, ctrlhandler.EventHandler, queue) {
		return func(ctx context.Context, h ctrlhandler.EventHandler, q queue) {
			h.Create(ctx, event.CreateEvent{Object: widget(), IsInInitialList: initial}, q)
		}
	}
	removed := func(ctx context.Context, h ctrlhandler.EventHandler, q queue) {
		h.Delete(ctx, event.DeleteEvent{Object: widget()}, q)
	}
	later := func(_ context.Context, _ ctrlhandler.EventHandler, q queue) { q.AddAfter(request, 1) }
	limited := func(_ context.Context, _ ctrlhandler.EventHandler, q queue) { q.AddRateLimited(request) }
	plain := func(_ context.Context, _ ctrlhandler.EventHandler, q queue) { q.Add(request) }
	for why, test := range map[string]struct {
		cr    *unstructured.Unstructured
		event func(context.Context, ctrlhandler.EventHandler, queue)
		want  string
	}{
		"a new object":                       {widget(), create(false), news},
		"one that was there before":          {widget(), create(true), ""},
		"one that is gone":                   {widget(), removed, news},
		"a request of the author":            {widget(), plain, news},
		"one for later":                      {widget(), later, news},
		"one that comes again":               {widget(), limited, news},
		"for a CR that is not there":         {nil, plain, ""},
		"for a CR that goes, with its runs":  {widget(deleting, withFinalizers(ourFinalizer)), plain, ""},
		"for a CR that has a reason already": {widget(), func(ctx context.Context, h ctrlhandler.EventHandler, q queue) { plain(ctx, h, q); plain(ctx, h, q) }, news},
		"for a CR that it names in any event": {widget(), func(ctx context.Context, h ctrlhandler.EventHandler, q queue) {
			h.Generic(ctx, event.GenericEvent{Object: widget()}, q)
		}, news},
	} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := priorityqueue.New[reconcile.Request]("test")
				defer q.ShutDown()
				h := ctrlhandler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{request} })
				r := &Reconciler{}
				given := source.TypedFunc[reconcile.Request](func(ctx context.Context, q queue) error {
					test.event(ctx, h, q)
					return nil
				})
				if err := (authoredSource{&Supervisor{Cache: cacheOf{cr: test.cr}}, r, titled{given}}).Start(t.Context(), q); err != nil {
					t.Fatal(err)
				}
				wantEqual(t, test.want, r.states.of(request.NamespacedName).mailbox.dirty)
				if test.want == "" {
					synctest.Wait()
					wantEqual(t, 0, q.Len())
					return
				}
				got, priority, _ := q.GetWithPriority()
				wantEqual(t, request, got)
				wantEqual(t, int(slots.Changed), priority)
			})
		})
	}
}

func TestASourceIsNamedWithoutItsAddress(t *testing.T) {
	events := make(chan event.TypedGenericEvent[reconcile.Request])
	for want, given := range map[string]Source{
		"channel source":            source.TypedChannel(events, ctrlhandler.TypedFuncs[reconcile.Request, reconcile.Request]{}),
		"func source":               source.TypedFunc[reconcile.Request](func(context.Context, queue) error { return nil }),
		"something of the author's": titled{},
	} {
		wantEqual(t, want, authoredSource{Source: given}.String())
	}
}

// titled is a source that says what it is.
type titled struct{ Source }

func (titled) String() string { return "kind source: something of the author's" }

func TestAPauseOfTheAuthor(t *testing.T) {
	watch, paused := plainWatch(), true
	watch.Paused = func(cr *unstructured.Unstructured) bool {
		cr.SetName("changed") // A copy.
		return paused
	}
	b := newBench(t, watch, widget(), interceptor.Funcs{})
	b.mustReconcile()
	wantEqual(t, 0, len(b.runner.specs))
	wantEqual(t, status.ReasonPaused, status.Read(b.stored(), status.Running).Reason)
	paused = false
	if !b.mailbox().needsRun(versionOf(&watch, b.stored())) {
		t.Error("an event that changes no version would be lost, such as one of a label that pauses")
	}
	b.mustReconcile()
	wantEqual(t, 1, len(b.runner.specs))
}

func TestAPauseOfTheAuthorHoldsNoDeletionUp(t *testing.T) {
	watch := finalizerWatch()
	watch.Paused = func(*unstructured.Unstructured) bool { return true }
	b := newBench(t, watch, widget(deleting, withFinalizers(ourFinalizer)), interceptor.Funcs{})
	b.mustReconcile()
	wantEqual(t, 1, len(b.runner.specs))
}

func TestAnAnnotationOfTheAuthorTriggers(t *testing.T) {
	watch := plainWatch()
	watch.TriggerAnnotations = []string{"example.com/size"}
	annotated := func(name, value string) *unstructured.Unstructured {
		cr := widget()
		cr.SetAnnotations(map[string]string{name: value})
		return cr
	}
	if !changed(&watch, annotated("example.com/size", "1"), annotated("example.com/size", "2")) {
		t.Error("another value of the annotation is no change")
	}
	if changed(&watch, annotated("example.com/sizes", "1"), annotated("example.com/sizes", "2")) {
		t.Error("an annotation of another name is a change")
	}
	r := &Reconciler{Watch: watch, Digest: "d"}
	if r.digestOf(versionOf(&r.Watch, annotated("example.com/size", "1"))) == r.digestOf(versionOf(&r.Watch, annotated("example.com/size", "2"))) {
		t.Error("after a restart, another value is no change")
	}
}

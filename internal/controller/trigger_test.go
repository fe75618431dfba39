package controller

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/slots"
	"github.com/ensign-operator/ensign/internal/watches"
)

func TestUpdatesThatTrigger(t *testing.T) {
	asked := plainWatch()
	asked.WatchAnnotationsChanges = true
	on := withLabels(map[string]string{"on": "yes"})
	content := func(text string) func(*unstructured.Unstructured) {
		return func(cr *unstructured.Unstructured) { cr.Object["data"] = text; cr.SetGeneration(0) }
	}
	for name, test := range map[string]struct {
		watch         watches.Watch
		before, after *unstructured.Unstructured
		want          bool
	}{
		"a new generation":   {plainWatch(), widget(), widget(withGeneration(2)), true},
		"a deletion":         {plainWatch(), widget(), widget(deleting), true},
		"a resync":           {plainWatch(), widget(), widget(), false},
		"our own status":     {plainWatch(), widget(), widget(withStatus(map[string]any{"a": "b"})), false},
		"our own finalizer":  {finalizerWatch(), widget(), widget(withFinalizers(ourFinalizer)), false},
		"a label edit":       {plainWatch(), widget(), widget(on), false},
		"an annotation edit": {plainWatch(), widget(), widget(withAnnotations(map[string]string{"a": "b"})), false},
		"an annotation edit, where it is asked for":     {asked, widget(), widget(withAnnotations(map[string]string{"a": "b"})), true},
		"an annotation that steers runs":                {plainWatch(), widget(), widget(withAnnotations(map[string]string{periodAnnotation: "1m"})), true},
		"kubectl's record of the last apply":            {asked, widget(), widget(withAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "{}"})), false},
		"gaining the selector's label":                  {selectorWatch(), widget(), widget(on), true},
		"losing it":                                     {selectorWatch(), widget(on), widget(withGeneration(2)), false},
		"a change of what the selector leaves out":      {selectorWatch(), widget(), widget(withGeneration(2)), false},
		"deletion of one that lost its label":           {selectorWatch(), widget(withFinalizers(ourFinalizer)), widget(withFinalizers(ourFinalizer), deleting), true},
		"new content of a kind without generations":     {plainWatch(), widget(content("a")), widget(content("b")), true},
		"the same content of a kind without them":       {plainWatch(), widget(content("a")), widget(content("a"), on), false},
		"another object of the same name between reads": {plainWatch(), widget(), widget(func(cr *unstructured.Unstructured) { cr.SetUID("uid-2") }), true},
	} {
		t.Run(name, func(t *testing.T) {
			predicate := triggers(&test.watch)
			got := predicate.Update(event.TypedUpdateEvent[*unstructured.Unstructured]{ObjectOld: reduced(t, test.before), ObjectNew: reduced(t, test.after)})
			if got != test.want {
				t.Errorf("want %v, got %v", test.want, got)
			}
		})
	}
}

func TestCreationTriggersWhereTheSelectorMatches(t *testing.T) {
	watch := selectorWatch()
	predicate := triggers(&watch)
	for name, test := range map[string]struct {
		cr   *unstructured.Unstructured
		want bool
	}{
		"matching":                            {widget(withLabels(map[string]string{"on": "yes"})), true},
		"not matching":                        {widget(), false},
		"not matching, but to be finalized":   {widget(withFinalizers(ourFinalizer), deleting), true},
		"being deleted without our finalizer": {widget(deleting), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := predicate.Create(event.TypedCreateEvent[*unstructured.Unstructured]{Object: reduced(t, test.cr)}); got != test.want {
				t.Errorf("want %v, got %v", test.want, got)
			}
		})
	}
}

func reduced(t *testing.T, cr *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	object, err := Reducer()(cr)
	if err != nil {
		t.Fatal(err)
	}
	return object.(*unstructured.Unstructured)
}

func TestReduceKeepsWhatTriggersNeedAndNoMore(t *testing.T) {
	full := widget(deleting, withFinalizers(ourFinalizer), withLabels(map[string]string{"l": "1"}), withStatus(map[string]any{"big": "status"}),
		withAnnotations(map[string]string{"a": "1", corev1.LastAppliedConfigAnnotation: "{}"}))
	before := full.DeepCopy()
	got := reduced(t, full)
	want := widget(deleting, withFinalizers(ourFinalizer), withLabels(map[string]string{"l": "1"}), withAnnotations(map[string]string{"a": "1"}))
	delete(want.Object, "spec")
	delete(want.Object["metadata"].(map[string]any), "creationTimestamp")
	delete(got.Object["metadata"].(map[string]any), "creationTimestamp")
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before.Object, full.Object); diff != "" {
		t.Errorf("the object that was handed in changed:\n%s", diff)
	}
	if other, err := Reducer()("no object"); err != nil || other != "no object" {
		t.Errorf("want what is no object as it is, got %v, %v", other, err)
	}
}

func TestMemories(t *testing.T) {
	name := types.NamespacedName{Namespace: "ns", Name: "w"}
	cancelOf := func(m *memories, uid types.UID) (context.Context, bool) {
		m.of(name, uid)
		ctx, cancel := context.WithCancelCause(context.Background())
		return ctx, m.running(name, cancel)
	}
	t.Run("a CR that is gone ends its run", func(t *testing.T) {
		m := &memories{}
		ctx, _ := cancelOf(m, "a")
		m.lost(widget(withUID("a")))
		if !errors.Is(context.Cause(ctx), errGone) {
			t.Errorf("want errGone, got %v", context.Cause(ctx))
		}
	})
	t.Run("a CR that went before its run began has none", func(t *testing.T) {
		m := &memories{}
		m.of(name, "a")
		m.lost(widget(withUID("a")))
		if _, ok := cancelOf(m, "a"); ok {
			t.Error("the run was admitted")
		}
	})
	t.Run("news of a predecessor's end is none of the successor's", func(t *testing.T) {
		m := &memories{}
		ctx, ok := cancelOf(m, "b")
		m.lost(widget(withUID("a")))
		m.deleted(widget(withUID("a")))
		if !ok || ctx.Err() != nil {
			t.Errorf("the successor's run ended: %v", context.Cause(ctx))
		}
	})
	t.Run("a deletion without our finalizer cancels", func(t *testing.T) {
		m := &memories{}
		ctx, _ := cancelOf(m, "a")
		m.deleted(widget(withUID("a")))
		if !errors.Is(context.Cause(ctx), errDeleted) {
			t.Errorf("want errDeleted, got %v", context.Cause(ctx))
		}
	})
	t.Run("a deletion that was seen before the run began cancels it", func(t *testing.T) {
		m := &memories{}
		m.deleted(widget(withUID("a")))
		if ctx, _ := cancelOf(m, "a"); !errors.Is(context.Cause(ctx), errDeleted) {
			t.Errorf("want errDeleted, got %v", context.Cause(ctx))
		}
	})
	t.Run("nothing is canceled after the end", func(t *testing.T) {
		m := &memories{}
		ctx, _ := cancelOf(m, "a")
		m.ended(name)
		m.lost(widget(withUID("a")))
		if ctx.Err() != nil {
			t.Error("an ended run was canceled")
		}
	})
	t.Run("a recreated CR remembers nothing of its predecessor", func(t *testing.T) {
		m := &memories{}
		old, _ := m.of(name, "a")
		old.failures, old.pending = 3, &verdict{}
		fresh, predecessor := m.of(name, "b")
		if predecessor != "a" || fresh.failures != 0 || fresh.pending != nil {
			t.Errorf("got predecessor %q and %+v", predecessor, fresh)
		}
	})
	t.Run("dropping a name gives every UID that it stood for", func(t *testing.T) {
		m := &memories{}
		m.of(name, "b")
		m.lost(widget(withUID("a")))
		if diff := cmp.Diff([]types.UID{"b", "a"}, m.drop(name)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if again := m.drop(name); again != nil {
			t.Errorf("a dropped name still stands for %v", again)
		}
	})
}

func TestWhatAnEventShows(t *testing.T) {
	for name, test := range map[string]struct {
		cr    *unstructured.Unstructured
		watch watches.Watch
		want  sight
	}{
		"a new CR is a change":                        {widget(), plainWatch(), sight{class: slots.Changed}},
		"a generation that no status speaks of":       {widget(withGeneration(2), withStatus(map[string]any{"observedGeneration": int64(1)})), plainWatch(), sight{class: slots.Changed}},
		"a reported generation is usual":              {widget(withStatus(map[string]any{"observedGeneration": int64(1)})), plainWatch(), sight{class: slots.Usual}},
		"what is to be finalized is urgent":           {widget(deleting, withFinalizers(ourFinalizer)), finalizerWatch(), sight{class: slots.Urgent}},
		"what only others finalize is idle":           {widget(deleting, withFinalizers("x.io/y")), finalizerWatch(), sight{idle: true, class: slots.Urgent}},
		"annotations that do not parse need no slot":  {widget(withAnnotations(map[string]string{periodAnnotation: "often"})), plainWatch(), sight{idle: true, class: slots.Changed}},
		"not even such annotations keep a finalizer":  {widget(deleting, withFinalizers(ourFinalizer), withAnnotations(map[string]string{periodAnnotation: "often"})), finalizerWatch(), sight{class: slots.Urgent}},
		"without a finalizer of the watch it is idle": {widget(deleting, withFinalizers(ourFinalizer)), plainWatch(), sight{idle: true, class: slots.Urgent}},
	} {
		t.Run(name, func(t *testing.T) {
			reduced, err := Reducer()(test.cr)
			if err != nil {
				t.Fatal(err)
			}
			h := enqueue{watch: &test.watch}
			wantEqual(t, test.want, h.sight(reduced.(*unstructured.Unstructured)), cmp.AllowUnexported(sight{}))
		})
	}
}

func TestTheQueueGivesPressingCRsFirst(t *testing.T) {
	watch := finalizerWatch()
	h := enqueue{watch: &watch, memories: &memories{}}
	q := priorityqueue.New[reconcile.Request]("test")
	defer q.ShutDown()
	named := func(name string, cr *unstructured.Unstructured) *unstructured.Unstructured {
		cr.SetName(name)
		return cr
	}
	reported := withStatus(map[string]any{"observedGeneration": int64(1)})
	for _, cr := range []*unstructured.Unstructured{
		named("usual", widget(reported)), named("changed", widget()),
		named("finalized", widget(reported, deleting, withFinalizers(ourFinalizer))),
	} {
		h.Create(t.Context(), crCreated{Object: cr, IsInInitialList: true}, q)
	}
	eventually(t, func() bool { return q.Len() == 3 })
	var order []string
	for range 3 {
		req, _ := q.Get()
		order = append(order, req.Name)
	}
	wantEqual(t, []string{"finalized", "changed", "usual"}, order)
}

func TestNoAttemptFollowsWhatHasBeenRead(t *testing.T) {
	key := client.ObjectKeyFromObject(widget())
	read := func(cr *unstructured.Unstructured) func(*memories) {
		return func(m *memories) {
			m.of(key, cr.GetUID())
			m.rests(cr)
		}
	}
	waiting := func(m *memories) {
		m.saw(widget(), sight{}, aCreation)
		m.await(key, func() {})
	}
	for name, test := range map[string]struct {
		before func(*memories)
		cr     *unstructured.Unstructured
		want   int
	}{
		"a CR that was never read":                    {func(*memories) {}, widget(), 1},
		"the version that was read":                   {read(widget(withVersion("5"))), widget(withVersion("5")), 0},
		"a version before it, of a watch that lags":   {read(widget(withVersion("10"))), widget(withVersion("9")), 0},
		"a version after it":                          {read(widget(withVersion("9"))), widget(withVersion("10")), 1},
		"another object of the name":                  {read(widget(withVersion("10"))), widget(withUID("uid-2"), withVersion("9")), 1},
		"a version without order":                     {read(widget(withVersion("b"))), widget(withVersion("a")), 1},
		"a CR whose attempt waits and reads it later": {waiting, widget(withVersion("10")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			q, h := testQueue(t)
			test.before(h.memories)
			h.Create(t.Context(), crCreated{Object: test.cr}, q)
			wantEqual(t, test.want, q.Len())
			q, h = testQueue(t)
			test.before(h.memories)
			h.Update(t.Context(), crUpdated{ObjectOld: widget(), ObjectNew: test.cr}, q)
			wantEqual(t, test.want, q.Len())
		})
	}
}

func TestAPredecessorsEndIsNoNewsOfItsSuccessor(t *testing.T) {
	key := client.ObjectKeyFromObject(widget())
	for name, test := range map[string]struct {
		uid  types.UID
		want int
	}{
		"the object that was read":   {"uid-1", 1},
		"one that it has superseded": {"uid-0", 0},
	} {
		t.Run(name, func(t *testing.T) {
			q, h := testQueue(t)
			h.memories.of(key, "uid-1")
			h.memories.rests(widget(withVersion("9")))
			h.Delete(t.Context(), crDeleted{Object: widget(withUID(test.uid))}, q)
			wantEqual(t, test.want, q.Len())
			_, needed := h.memories.await(key, func() {})
			wantEqual(t, test.want == 0, needed)
		})
	}
}

// testQueue gives a queue and what fills it.
func testQueue(t *testing.T) (queue, *enqueue) {
	t.Helper()
	watch := plainWatch()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(q.ShutDown)
	return q, &enqueue{watch: &watch, memories: &memories{}}
}

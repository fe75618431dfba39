package controller

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/watches"
)

var secretKind = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}

// relation is a Related that knows one state for all.
type relation struct {
	state  string
	refers []Objects
	asked  Objects
	// news is the UID of a CR whose Secret has changed.
	news types.UID
	// health is that of the CR's children.
	health Health
	// shown are the fields of children that the status shows.
	shown map[string]any
}

func (r *relation) Health(schema.GroupVersionKind, types.NamespacedName) Health { return r.health }

func (r *relation) StatusFrom(schema.GroupVersionKind, types.NamespacedName) map[string]any {
	return r.shown
}

func (r *relation) Subscribe(_ context.Context, _ Scope, changed func(types.NamespacedName, types.UID, string, int)) {
	changed(request.NamespacedName, r.news, "Secret ns/s changed", 0)
}

func (r *relation) Refers(_ schema.GroupVersionKind, _ types.NamespacedName, to Objects) {
	r.refers = append(r.refers, to)
}

func (r *relation) State(_ context.Context, _ schema.GroupVersionKind, _ types.NamespacedName, to Objects) string {
	r.asked = to
	return r.state
}

func referringWatch() watches.Watch {
	watch := plainWatch()
	watch.References = []watches.Reference{
		{GVK: secretKind, Name: watches.Path{"spec", "secret"}},
		{GVK: secretKind, Name: watches.Path{"spec", "others", watches.EachElement}, Namespace: watches.Path{"spec", "home"}},
	}
	return watch
}

func referring(cr *unstructured.Unstructured) {
	cr.Object["spec"] = map[string]any{"secret": "a", "others": []any{"b", "c/d"}, "home": "far"}
}

// cacheOf is a filled cache that holds the CR, or nothing.
type cacheOf struct {
	cache.Cache
	cache.Informer

	cr *unstructured.Unstructured
}

func (c cacheOf) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return c, nil
}

func (cacheOf) HasSynced() bool { return true }

func (c cacheOf) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if c.cr == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, "w")
	}
	c.cr.DeepCopyInto(object.(*unstructured.Unstructured))
	return nil
}

func TestNewsOfRelatedObjects(t *testing.T) {
	for why, test := range map[string]struct {
		cr   *unstructured.Unstructured
		uid  types.UID
		want string
	}{
		"of a CR that is known":         {widget(), "uid-1", "related: Secret ns/s changed"},
		"of a CR whose UID is not told": {widget(), "", "related: Secret ns/s changed"},
		"of a predecessor of the name":  {widget(), "uid-0", ""},
		"of a CR that is not there":     {nil, "uid-1", ""},
		"of a CR that goes":             {widget(deleting, withFinalizers(ourFinalizer)), "uid-1", ""},
	} {
		t.Run(why, func(t *testing.T) {
			q, r := newQueue(t), &Reconciler{Related: &relation{news: test.uid}}
			source := relatedSource{&Supervisor{Cache: cacheOf{cr: test.cr}}, r, servedKind{}}
			if err := source.Start(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			wantEqual(t, test.want, r.states.of(request.NamespacedName).mailbox.dirty)
			wantEqual(t, test.want != "", q.Len() == 1)
		})
	}
}

func TestADriftRunsWhatHasRun(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.mustReconcile()
	b.mailbox().markDirty(causeRelated + "Secret ns/s changed")
	b.mustReconcile()
	wantEqual(t, []string{"started ns/w generation 1: created", "started ns/w generation 1: related: Secret ns/s changed"}, []string{b.journal.lines[0], b.journal.lines[3]})
	b.mustReconcile()
	wantEqual(t, 2, len(b.runner.specs))
}

func TestADriftDuringARunRunsAgain(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		b.mailbox().markDirty(causeRelated + "Secret ns/s changed")
		return succeed(ctx, spec)
	}
	b.mustReconcile()
	b.runner.run = succeed
	b.mustReconcile()
	b.mustReconcile()
	wantEqual(t, 2, len(b.runner.specs))
}

// What the start of a run could not be written for must not cost the reason of the run.
func TestADriftOutlivesARunThatCouldNotBegin(t *testing.T) {
	broken := false
	b := newBench(t, plainWatch(), widget(), failing(&broken, apierrors.NewForbidden(schema.GroupResource{}, "w", errors.New("not now"))))
	b.mustReconcile()
	b.mailbox().markDirty(causeRelated + "Secret ns/s changed")
	broken = true
	if _, err := b.reconcile(); err == nil {
		t.Fatal("want the API server's error")
	}
	broken = false
	b.mustReconcile()
	wantEqual(t, 2, len(b.runner.specs))
}

func TestADriftBeforeTheFirstAttemptIsNotLost(t *testing.T) {
	for why, test := range map[string]struct {
		dirty string
		want  int
	}{
		"no drift": {"", 0},
		"a drift":  {causeRelated + "Secret ns/s changed", 1},
	} {
		t.Run(why, func(t *testing.T) {
			b := newBench(t, selectorWatch(), settled(t), interceptor.Funcs{})
			if test.dirty != "" {
				b.mailbox().markDirty(test.dirty)
			}
			b.mustReconcile()
			wantEqual(t, test.want, len(b.runner.specs))
			if test.want > 0 && !strings.HasSuffix(b.journal.lines[0], ": related: Secret ns/s changed") {
				t.Error(b.journal.lines[0])
			}
		})
	}
}

func TestWhatWaitsForItsSlotIsMorePressingOnceItIsDirty(t *testing.T) {
	b := newBench(t, selectorWatch(), settled(t), interceptor.Funcs{})
	b.mustReconcile()
	b.clock.SetTime(b.state().due)
	var priorities []slots.Priority
	b.Slots = slotsFunc(func(ctx context.Context, _ schema.GroupVersionKind, priority slots.Priority) (func(), bool, error) {
		priorities = append(priorities, priority)
		if priority == slots.Normal {
			b.mailbox().markDirty(causeRelated + "Secret ns/s changed")
			<-ctx.Done()
			return nil, true, context.Cause(ctx)
		}
		return func() {}, true, nil
	})
	b.mustReconcile()
	wantEqual(t, []slots.Priority{slots.Normal, slots.Changed}, priorities)
	wantEqual(t, 1, len(b.runner.specs))
}

func TestTheCacheKeepsReferences(t *testing.T) {
	watch := referringWatch()
	full := widget(referring)
	object, err := StripTransform(watch)(full)
	if err != nil {
		t.Fatal(err)
	}
	again, err := StripTransform(watch)(object) // As a reflector does with its first list.
	if err != nil {
		t.Fatal(err)
	}
	stripped := again.(*unstructured.Unstructured).DeepCopy()
	want := Objects{secretKind: {{Namespace: "ns", Name: "a"}, {Namespace: "far", Name: "b"}, {Namespace: "far", Name: "c/d"}}}
	wantEqual(t, want, referencesOf(watch.References, stripped))
	wantEqual(t, Objects{}, referencesOf(watch.References[:0], stripped))
	know := &relation{}
	q, h := newQueue(t), &handler{watch: &watch, states: &states{}, related: know}
	h.Create(t.Context(), crCreated{Object: stripped}, q)
	h.Update(t.Context(), crUpdated{ObjectOld: stripped, ObjectNew: stripped}, q)
	h.Delete(t.Context(), crDeleted{Object: stripped}, q)
	wantEqual(t, []Objects{want, want, nil}, know.refers)
}

// A run has written the name of an object into the status, and nobody knows whether the object has
// changed since.
func TestAReferenceThatARunMakesBringsTheCRBack(t *testing.T) {
	watch := referringWatch()
	made := func(secrets ...any) *unstructured.Unstructured {
		object, err := StripTransform(watch)(widget(func(cr *unstructured.Unstructured) { cr.Object["spec"] = map[string]any{"others": secrets} }))
		if err != nil {
			t.Fatal(err)
		}
		return object.(*unstructured.Unstructured)
	}
	went, goes := made(), made("b")
	deleting(went)
	deleting(goes)
	for name, test := range map[string]struct {
		before, after *unstructured.Unstructured
		want          string
	}{
		"the first":           {made(), made("b"), "related: Secret ns/b is referred to now"},
		"one more":            {made("b"), made("b", "c"), "related: Secret ns/c is referred to now"},
		"the same":            {made("b", "c"), made("c", "b"), ""},
		"one less":            {made("b", "c"), made("b"), ""},
		"of a CR that goes":   {went, goes, ""},
		"none there ever was": {made(), made(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, watch, settled(t), interceptor.Funcs{})
			b.Related = &relation{state: "one"}
			b.mustReconcile()
			q, h := newQueue(t), b.handler()
			h.Update(t.Context(), crUpdated{ObjectOld: test.before, ObjectNew: test.after}, q)
			wantEqual(t, test.want, b.mailbox().dirty)
			wantEqual(t, test.want != "" || test.after == goes, q.Len() == 1)
		})
	}
}

func TestWhatACRRefersToCountsAfterARestart(t *testing.T) {
	for why, test := range map[string]struct {
		before, now string
		runs        int
	}{
		"the same state":            {"one", "one", 0},
		"another state":             {"one", "two", 1},
		"a state nobody knows":      {"one", "", 1},
		"a state that nobody knew":  {"", "one", 1},
		"never a state anyone knew": {"", "", 1},
	} {
		t.Run(why, func(t *testing.T) {
			before := newBench(t, referringWatch(), widget(referring), interceptor.Funcs{})
			before.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
				before.Related.(*relation).state = "what it is at the run's end does not count"
				result := succeed(ctx, spec)
				result.Summary.Completion = before.Clock.Now()
				return result
			}
			before.Related = &relation{state: test.before}
			before.mustReconcile()
			cr := before.stored()
			cr.SetResourceVersion("")
			b := newBench(t, referringWatch(), cr, interceptor.Funcs{})
			know := &relation{state: test.now}
			b.Related = know
			b.mustReconcile()
			wantEqual(t, test.runs, len(b.runner.specs))
			wantEqual(t, Objects{secretKind: {{Namespace: "ns", Name: "a"}, {Namespace: "far", Name: "b"}, {Namespace: "far", Name: "c/d"}}}, know.asked)
		})
	}
}

// An attempt may tell to what a CR refers after the event of its end.
func TestACRThatIsGoneRefersToNothing(t *testing.T) {
	b := newBench(t, referringWatch(), nil, interceptor.Funcs{})
	know := &relation{}
	b.Related = know
	b.mustReconcile()
	wantEqual(t, []Objects{nil}, know.refers)
}

func TestAnAttemptSaysToWhatItsCRRefers(t *testing.T) {
	want := Objects{secretKind: {{Namespace: "ns", Name: "a"}, {Namespace: "far", Name: "b"}, {Namespace: "far", Name: "c/d"}}}
	for why, digest := range map[string]string{"its content has a digest": "d", "it has none": ""} {
		t.Run(why, func(t *testing.T) {
			b := newBench(t, referringWatch(), widget(referring), interceptor.Funcs{})
			know := &relation{}
			b.Related, b.Digest = know, digest
			b.mustReconcile()
			if digest == "" {
				wantEqual(t, []Objects{want}, know.refers)
			} else {
				wantEqual(t, want, know.asked)
			}
		})
	}
}

func TestACRThatGoesWaitsForNoReferences(t *testing.T) {
	watch := finalizerWatch()
	watch.References = referringWatch().References
	b := newBench(t, watch, widget(referring, deleting, withFinalizers(ourFinalizer)), interceptor.Funcs{})
	know := &relation{}
	b.Related = know
	b.mustReconcile()
	wantEqual(t, 1, len(b.runner.specs))
	if know.asked != nil {
		t.Error("it was asked for what the CR refers to")
	}
}

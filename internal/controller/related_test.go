package controller

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ensign-operator/ensign/internal/runner"
	"github.com/ensign-operator/ensign/internal/slots"
	"github.com/ensign-operator/ensign/internal/watches"
)

var secretKind = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}

// relation is a Related that knows one state for all.
type relation struct {
	state  string
	refers []Objects
	asked  Objects
}

func (r *relation) Follow(context.Context, Scope, func(types.NamespacedName, types.UID, string)) {}

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
		{GVK: secretKind, Name: watches.Path{"spec", "others", watches.Each}, Namespace: watches.Path{"spec", "home"}},
	}
	return watch
}

func referring(cr *unstructured.Unstructured) {
	cr.Object["spec"] = map[string]any{"secret": "a", "others": []any{"b", "c/d"}, "home": "far"}
}

func TestNewsOfRelatedObjects(t *testing.T) {
	name := request.NamespacedName
	shown := func(s sight) func(*memories) { return func(m *memories) { m.saw(widget(), s, aCreation) } }
	for why, test := range map[string]struct {
		before func(*memories)
		uid    types.UID
		want   bool
	}{
		"of a CR that is known":                         {shown(sight{}), "uid-1", true},
		"of a CR whose UID is not told":                 {shown(sight{}), "", true},
		"of a predecessor of the name":                  {shown(sight{}), "uid-0", false},
		"of a CR that was never shown":                  {func(*memories) {}, "uid-1", false},
		"of a CR that is gone, or only others finalize": {shown(sight{idle: true, class: slots.Urgent}), "uid-1", false},
		"of a CR that is being finalized":               {shown(sight{class: slots.Urgent}), "uid-1", false},
		"of a CR whose attempt waits for its slot": {func(m *memories) {
			m.saw(widget(), sight{}, aCreation)
			m.await(name, func() {})
		}, "uid-1", false},
		"of a CR whose attempt holds its slot and reads it": {func(m *memories) {
			m.saw(widget(), sight{}, aCreation)
			m.await(name, func() {})
			m.admitted(name)
		}, "uid-1", false},
		"of a CR whose attempt ended without a run": {func(m *memories) {
			m.saw(widget(), sight{}, aCreation)
			m.await(name, func() {})
			m.admitted(name)
			m.over(name)
		}, "uid-1", true},
		"of a CR whose run is at work": {func(m *memories) {
			m.saw(widget(), sight{}, aCreation)
			m.await(name, func() {})
			m.admitted(name)
			m.begins(widget())
		}, "uid-1", true},
		"of a CR that was deleted": {func(m *memories) {
			m.saw(widget(), sight{}, aCreation)
			m.lost(widget())
		}, "uid-1", false},
	} {
		t.Run(why, func(t *testing.T) {
			m := &memories{}
			test.before(m)
			wantEqual(t, test.want, m.nudged(name, test.uid, "Secret ns/s changed"))
		})
	}
}

// What waits for its slot waits in the class of what has changed.
func TestNewsWakesWhatWaits(t *testing.T) {
	m := &memories{}
	m.saw(widget(), sight{class: slots.Usual}, aCreation)
	woken := 0
	class, _ := m.await(request.NamespacedName, func() { woken++ })
	wantEqual(t, slots.Usual, class)
	m.nudged(request.NamespacedName, "uid-1", "Secret ns/s changed")
	class, _ = m.await(request.NamespacedName, func() { woken++ })
	wantEqual(t, slots.Changed, class)
	m.nudged(request.NamespacedName, "uid-1", "Secret ns/s changed")
	wantEqual(t, 1, woken)
	wantEqual(t, "Secret ns/s changed", m.begins(widget()))
	wantEqual(t, false, m.mustRun(request.NamespacedName))
	wantEqual(t, "", m.begins(widget()))
}

func TestADriftBeforeTheFirstAttemptIsNotLost(t *testing.T) {
	before := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	before.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		result := succeed(ctx, spec)
		result.Summary.Completion = before.Clock.Now()
		return result
	}
	before.mustReconcile()
	cr := before.stored()
	cr.SetResourceVersion("")
	for why, test := range map[string]struct {
		nudge func(m *memories)
		want  int
	}{
		"no drift": {func(*memories) {}, 0},
		"a drift before the CR is shown": {func(m *memories) {
			m.byName = nil
			m.nudged(request.NamespacedName, "uid-1", "Secret ns/s changed")
			m.saw(widget(), sight{}, aCreation)
		}, 1},
		"a drift after the CR is shown": {func(m *memories) { m.nudged(request.NamespacedName, "uid-1", "Secret ns/s changed") }, 1},
	} {
		t.Run(why, func(t *testing.T) {
			b := newBench(t, plainWatch(), cr.DeepCopy(), interceptor.Funcs{})
			test.nudge(&b.memories)
			b.mustReconcile()
			wantEqual(t, test.want, len(b.runner.specs))
			if test.want > 0 && !strings.HasSuffix(b.journal.lines[0], ": related: Secret ns/s changed") {
				t.Error(b.journal.lines[0])
			}
		})
	}
}

// Whether it comes before or after the decision: news while a CR is let rest lets
// it run after all, once.
func TestNewsDuringAnAttemptThatRunsNothing(t *testing.T) {
	before := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	before.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		result := succeed(ctx, spec)
		result.Summary.Completion = before.Clock.Now()
		return result
	}
	before.mustReconcile()
	cr := before.stored()
	cr.SetResourceVersion("")
	var b *bench
	var first sync.Once
	b = newBench(t, plainWatch(), cr, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
		first.Do(func() { wantEqual(t, false, b.memories.nudged(key, "uid-1", "Secret ns/s changed")) })
		return c.Get(ctx, key, object, options...)
	}})
	wantEqual(t, time.Hour, b.mustReconcile().RequeueAfter)
	wantEqual(t, 1, len(b.runner.specs))

	m := &memories{}
	m.saw(widget(), sight{}, aCreation)
	m.await(request.NamespacedName, func() {})
	m.admitted(request.NamespacedName)
	m.nudged(request.NamespacedName, "uid-1", "Secret ns/s changed")
	wantEqual(t, true, m.over(request.NamespacedName))
	wantEqual(t, false, m.over(request.NamespacedName))
}

func TestTheCacheKeepsReferences(t *testing.T) {
	watch := referringWatch()
	full := widget(referring)
	object, err := Reducer(watch)(full)
	if err != nil {
		t.Fatal(err)
	}
	reduced := object.(*unstructured.Unstructured).DeepCopy()
	want := Objects{secretKind: {{Namespace: "ns", Name: "a"}, {Namespace: "far", Name: "b"}, {Namespace: "far", Name: "c/d"}}}
	wantEqual(t, want, keptReferences(watch.References, reduced))
	wantEqual(t, Objects{}, keptReferences(watch.References[:0], reduced))
	q, h := testQueue(t)
	know := &relation{}
	h.watch, h.related = &watch, know
	h.Create(t.Context(), crCreated{Object: reduced}, q)
	h.Update(t.Context(), crUpdated{ObjectOld: reduced, ObjectNew: reduced}, q)
	h.Delete(t.Context(), crDeleted{Object: reduced}, q)
	wantEqual(t, []Objects{want, want, nil}, know.refers)
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

package controller

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/runner"
	"github.com/ensign-operator/ensign/internal/slots"
)

// handler gives what tells the bench of events, and a queue for it.
func (b *bench) handler() (*enqueue, queue) {
	b.t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	b.t.Cleanup(q.ShutDown)
	return &enqueue{watch: &b.Watch, memories: &b.memories}, q
}

// settled is a CR that an earlier manager has left as it should be.
func settled(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	before := newBench(t, selectorWatch(), widget(withLabels(map[string]string{"on": "yes"})), interceptor.Funcs{})
	before.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		result := succeed(ctx, spec)
		result.Summary.Completion = before.Clock.Now()
		return result
	}
	before.mustReconcile()
	cr := before.stored()
	cr.SetResourceVersion("")
	return cr
}

func TestAChangeThatCameBeforeTheFirstAttemptIsNoReasonToRest(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(h *enqueue, q queue, cr *unstructured.Unstructured)
		want    int
	}{
		"nothing happened": {func(*enqueue, queue, *unstructured.Unstructured) {}, 0},
		"it gained the selector's label while it was in the queue": {func(h *enqueue, q queue, cr *unstructured.Unstructured) {
			h.Update(t.Context(), crUpdated{ObjectOld: widget(), ObjectNew: cr}, q)
		}, 1},
		"it gained the label while it waited for its slot": {func(h *enqueue, q queue, cr *unstructured.Unstructured) {
			h.memories.await(request.NamespacedName, func() {})
			h.Update(t.Context(), crUpdated{ObjectOld: widget(), ObjectNew: cr}, q)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, selectorWatch(), settled(t), interceptor.Funcs{})
			h, q := b.handler()
			test.happens(h, q, b.stored())
			b.mustReconcile()
			wantEqual(t, test.want, len(b.runner.specs))
		})
	}
}

func TestAnAnnotationWithoutEffectIsToldOfOnce(t *testing.T) {
	annotated := func(uid types.UID, names ...string) *unstructured.Unstructured {
		annotations := map[string]string{}
		for _, name := range names {
			annotations[annotationPrefix+name] = "1"
		}
		cr := widget()
		cr.SetUID(uid)
		cr.SetAnnotations(annotations)
		return cr
	}
	many := strings.Fields(strings.Repeat("x ", 300))
	for i := range many {
		many[i] += strconv.Itoa(i)
	}
	for name, test := range map[string]struct {
		happens func(ctx context.Context, h *enqueue, q queue)
		want    []string // each in a line of its own
	}{
		"those that are known": {func(ctx context.Context, h *enqueue, q queue) {
			h.Create(ctx, crCreated{Object: annotated("1", "reconcile-period", "max-runner-artifacts", "verbosity", "paused", "reconcile-requested-at")}, q)
		}, nil},
		"one that is not, with the one that may be meant": {func(ctx context.Context, h *enqueue, q queue) {
			h.Create(ctx, crCreated{Object: annotated("1", "reconcile-periode", "paused")}, q)
		}, []string{`"annotations"=["` + annotationPrefix + `reconcile-periode"] "number"=1 "nearest"="` + annotationPrefix + `reconcile-period"`}},
		"not again when the CR changes": {func(ctx context.Context, h *enqueue, q queue) {
			h.Create(ctx, crCreated{Object: annotated("1", "pause")}, q)
			h.Update(ctx, crUpdated{ObjectOld: annotated("1", "pause"), ObjectNew: annotated("1", "pause", "verbosity")}, q)
		}, []string{"pause"}},
		"one that comes later": {func(ctx context.Context, h *enqueue, q queue) {
			h.Update(ctx, crUpdated{ObjectOld: annotated("1", "pause"), ObjectNew: annotated("1", "pause", "wait")}, q)
		}, []string{`["` + annotationPrefix + `wait"]`}},
		"those of a successor": {func(ctx context.Context, h *enqueue, q queue) {
			h.Update(ctx, crUpdated{ObjectOld: annotated("1", "pause"), ObjectNew: annotated("2", "pause")}, q)
		}, []string{`pause`}},
		"a few of many": {func(ctx context.Context, h *enqueue, q queue) {
			h.Create(ctx, crCreated{Object: annotated("1", many...)}, q)
		}, []string{`x101"] "number"=300`}},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
			h, q := newBench(t, selectorWatch(), widget(), interceptor.Funcs{}).handler()
			test.happens(ctx, h, q)
			if len(lines) != len(test.want) {
				t.Fatalf("got %q, want lines with %q", lines, test.want)
			}
			for i, want := range test.want {
				if !strings.Contains(lines[i], want) || !strings.Contains(lines[i], "WARNING") || !strings.Contains(lines[i], `"cr"="`) {
					t.Errorf("want %q in a warning, got %q", want, lines[i])
				}
			}
		})
	}
}

func TestAnEventThatCameWithTheReadIsNotTakenForRead(t *testing.T) {
	for _, test := range []struct {
		shown, read string
		want        bool
	}{{"5", "5", false}, {"10", "9", true}, {"9", "10", false}, {"b", "a", true}, {"a", "a", false}} {
		m := &memories{}
		m.of(request.NamespacedName, "uid-1")
		m.saw(widget(withVersion(test.shown)), sight{}, aChange)
		m.rests(widget(withVersion(test.read)))
		if got := m.asked(request.NamespacedName); got != test.want {
			t.Errorf("an event showed %s, an attempt read %s: asked is %v", test.shown, test.read, got)
		}
	}
}

func TestASuccessorThatOneUpdateTellsOfEndsTheRunOfItsPredecessor(t *testing.T) {
	watch := selectorWatch()
	old := widget(withLabels(map[string]string{"on": "yes"}), withVersion("5"))
	for name, successor := range map[string]*unstructured.Unstructured{
		"of the watch":     widget(withLabels(map[string]string{"on": "yes"}), withUID("uid-2"), withVersion("9")),
		"not of the watch": widget(withUID("uid-2"), withVersion("9")),
	} {
		t.Run(name, func(t *testing.T) {
			update := crUpdated{ObjectOld: old, ObjectNew: successor}
			if !triggers(&watch).Update(update) {
				t.Error("nobody is told")
			}
			b := newBench(t, watch, old, interceptor.Funcs{})
			h, q := b.handler()
			b.memories.of(request.NamespacedName, "uid-1")
			ctx, cancel := context.WithCancelCause(t.Context())
			b.memories.running(request.NamespacedName, cancel)
			h.Update(ctx, update, q)
			if !errors.Is(context.Cause(ctx), errGone) {
				t.Errorf("want the run to be ended, got %v", context.Cause(ctx))
			}
			wantEqual(t, 1, q.Len())
		})
	}
}

func TestTheDeletionOfAPredecessorIsNoNewsOfItsSuccessor(t *testing.T) {
	q, h := testQueue(t)
	key := client.ObjectKeyFromObject(widget())
	h.memories.of(key, "uid-2")
	h.memories.rests(widget(withUID("uid-2"), withVersion("9")))
	h.Update(t.Context(), crUpdated{ObjectOld: widget(withVersion("5")), ObjectNew: widget(deleting, withVersion("6"))}, q)
	wantEqual(t, 0, q.Len())
	if _, needed := h.memories.await(key, func() {}); !needed {
		t.Error("the successor seems to be gone")
	}
}

func TestACRThatIsSeenAfterItsEndMayRunAgain(t *testing.T) {
	q, h := testQueue(t)
	key := client.ObjectKeyFromObject(widget())
	h.memories.of(key, "uid-1")
	h.memories.rests(widget(withVersion("9")))
	h.Delete(t.Context(), crDeleted{Object: widget(withVersion("9"))}, q) // An informer that was told nonsense.
	h.Create(t.Context(), crCreated{Object: widget(withVersion("9"))}, q)
	wantEqual(t, 1, q.Len())
	if !h.memories.running(key, func(error) {}) {
		t.Error("its run is refused")
	}
}

func TestACRThatIsReadBeforeItsEventsWaitsForNone(t *testing.T) {
	b := newBench(t, plainWatch(), widget(withUID("uid-2"), withVersion("7")), interceptor.Funcs{})
	b.memories.lost(widget(withVersion("5")))
	wantEqual(t, soon, b.mustReconcile().RequeueAfter)
	b.mustReconcile()
	wantEqual(t, 1, len(b.runner.specs))
}

// What is shown while an attempt is about to read the CR asks for another only
// where the attempt has read less.
func TestNewsWhileAnAttemptReads(t *testing.T) {
	name := request.NamespacedName
	change := func(m *memories) bool { return m.saw(widget(withVersion("9")), sight{class: slots.Changed}, aChange) }
	for why, test := range map[string]struct {
		tell    func(*memories) bool
		attempt func(*memories)
		want    bool
	}{
		"a run reads what was shown":           {change, func(m *memories) { m.begins(widget(withVersion("9"))) }, false},
		"a run reads less":                     {change, func(m *memories) { m.begins(widget(withVersion("8"))) }, true},
		"a rest reads what was shown":          {change, func(m *memories) { m.rests(widget(withVersion("9"))) }, false},
		"a rest reads less":                    {change, func(m *memories) { m.rests(widget(withVersion("8"))) }, true},
		"the attempt comes to neither":         {change, func(*memories) {}, true},
		"the attempt finds no object":          {change, func(m *memories) { m.drop(name) }, true},
		"the end of the object, and no object": {func(m *memories) bool { return m.lost(widget(withVersion("9"))) }, func(m *memories) { m.drop(name) }, true},
		"nothing, and no object":               {func(*memories) bool { return false }, func(m *memories) { m.drop(name) }, false},
	} {
		t.Run(why, func(t *testing.T) {
			m := &memories{}
			m.saw(widget(withVersion("7")), sight{}, aCreation)
			m.await(name, func() {})
			m.admitted(name)
			wantEqual(t, false, test.tell(m))
			test.attempt(m)
			wantEqual(t, test.want, m.over(name))
			wantEqual(t, false, m.over(name))
		})
	}
}

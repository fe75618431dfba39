package controller

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

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

func TestGainingTheSelectorsLabelsRunsWhatHasRun(t *testing.T) {
	b := newBench(t, selectorWatch(), settled(t), interceptor.Funcs{})
	b.mustReconcile()
	wantEqual(t, 0, len(b.runner.specs))
	q := newQueue(t)
	b.handler().Update(t.Context(), crUpdated{ObjectOld: widget(), ObjectNew: b.stored()}, q)
	wantEqual(t, 1, q.Len())
	b.mustReconcile()
	wantEqual(t, 1, len(b.runner.specs))
	b.mustReconcile()
	wantEqual(t, 1, len(b.runner.specs))
}

func TestAnAnnotationWithoutEffectIsToldOfOnce(t *testing.T) {
	annotated := func(uid types.UID, names ...string) *unstructured.Unstructured {
		annotations := map[string]string{}
		for _, name := range names {
			annotations[watches.AnsibleAnnotations+name] = "1"
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
		happens func(ctx context.Context, h *handler, q queue)
		want    []string // each in a line of its own
	}{
		"those that are known": {func(ctx context.Context, h *handler, q queue) {
			h.Create(ctx, crCreated{Object: annotated("1", "reconcile-period", "max-runner-artifacts", "verbosity", "paused", "reconcile-requested-at")}, q)
		}, nil},
		"one that is not, with the one that may be meant": {func(ctx context.Context, h *handler, q queue) {
			h.Create(ctx, crCreated{Object: annotated("1", "reconcile-periode", "paused")}, q)
		}, []string{`"annotations"=["` + watches.AnsibleAnnotations + `reconcile-periode"] "number"=1 "nearest"="` + watches.AnsibleAnnotations + `reconcile-period"`}},
		"not again when the CR changes": {func(ctx context.Context, h *handler, q queue) {
			h.Create(ctx, crCreated{Object: annotated("1", "pause")}, q)
			h.Update(ctx, crUpdated{ObjectOld: annotated("1", "pause"), ObjectNew: annotated("1", "pause", "verbosity")}, q)
		}, []string{"pause"}},
		"one that comes later": {func(ctx context.Context, h *handler, q queue) {
			h.Update(ctx, crUpdated{ObjectOld: annotated("1", "pause"), ObjectNew: annotated("1", "pause", "wait")}, q)
		}, []string{`["` + watches.AnsibleAnnotations + `wait"]`}},
		"those of a successor": {func(ctx context.Context, h *handler, q queue) {
			h.Update(ctx, crUpdated{ObjectOld: annotated("1", "pause"), ObjectNew: annotated("2", "pause")}, q)
		}, []string{`pause`}},
		"a few of many": {func(ctx context.Context, h *handler, q queue) {
			h.Create(ctx, crCreated{Object: annotated("1", many...)}, q)
		}, []string{`x101"] "number"=300`}},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
			test.happens(ctx, newBench(t, selectorWatch(), widget(), interceptor.Funcs{}).handler(), newQueue(t))
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

func newQueue(t *testing.T) queue {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(q.ShutDown)
	return q
}

// Every event puts its CR into the queue. What it does to the attempt that is at work on
// the name depends on what it says, and on how far the attempt is.
func TestEventsInterrupt(t *testing.T) {
	ours := withFinalizers(ourFinalizer)
	for name, test := range map[string]struct {
		happens         func(h *handler, q queue)
		endsWait        bool
		endsRun         error
		isOfAnotherName bool
	}{
		"a creation": {func(h *handler, q queue) { h.Create(t.Context(), crCreated{Object: widget()}, q) }, true, nil, false},
		"a change": {func(h *handler, q queue) {
			h.Update(t.Context(), crUpdated{ObjectOld: widget(), ObjectNew: widget(withGeneration(2))}, q)
		}, true, nil, false},
		"a deletion with our finalizer": {func(h *handler, q queue) {
			h.Update(t.Context(), crUpdated{ObjectOld: widget(ours), ObjectNew: widget(ours, deleting)}, q)
		}, true, nil, false},
		"a deletion with our finalizer, of content that gives way": {func(h *handler, q queue) {
			h.watch.Finalizer, h.watch.Chart = &watches.Finalizer{Name: ourFinalizer}, &watches.Chart{}
			h.Update(t.Context(), crUpdated{ObjectOld: widget(ours), ObjectNew: widget(ours, deleting)}, q)
		}, true, errSuperseded, false},
		"a deletion without our finalizer": {func(h *handler, q queue) {
			h.Update(t.Context(), crUpdated{ObjectOld: widget(), ObjectNew: widget(deleting)}, q)
		}, true, errDeleted, false},
		"its end": {func(h *handler, q queue) { h.Delete(t.Context(), crDeleted{Object: widget()}, q) }, true, errGone, false},
		"its end and its successor's creation at once": {func(h *handler, q queue) {
			h.Update(t.Context(), crUpdated{ObjectOld: widget(), ObjectNew: widget(withUID("uid-2"))}, q)
		}, true, errGone, false},
		"the end of a predecessor": {func(h *handler, q queue) {
			h.Delete(t.Context(), crDeleted{Object: widget(withUID("uid-0"))}, q)
		}, true, nil, false},
		"the end of another CR": {func(h *handler, q queue) {
			other := widget()
			other.SetName("other")
			h.Delete(t.Context(), crDeleted{Object: other}, q)
		}, false, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &states{}
			watch := finalizerWatch() // Some cases change it.
			h, q := &handler{watch: &watch, states: s}, newQueue(t)
			mail := &s.of(request.NamespacedName).mailbox
			readCtx := mail.listen(t.Context())
			test.happens(h, q)
			wantEqual(t, test.endsWait, errors.Is(context.Cause(readCtx), errEvent))
			wantEqual(t, 1, q.Len())

			readCtx = mail.listen(t.Context())
			ctx, cancel := context.WithCancelCause(t.Context())
			if !mail.listenInRun(readCtx, "uid-1", func(end *interruption) { cancel(end) }) {
				t.Fatal("the run may not begin")
			}
			test.happens(h, q)
			if got := context.Cause(ctx); !errors.Is(got, test.endsRun) {
				t.Errorf("want the run to end with %v, got %v", test.endsRun, got)
			}

			readCtx = mail.listen(t.Context())
			test.happens(h, q)
			wantEqual(t, test.isOfAnotherName, mail.listenInRun(readCtx, "uid-1", func(end *interruption) { cancel(end) }))
			mail.close()
			test.happens(h, q) // Nobody listens.
		})
	}
}

func TestASuccessorInheritsOnlyWhyItIsDirty(t *testing.T) {
	e := &entry{state: state{version: version{uid: "uid-1"}, last: &conclusion{}, unwritten: true, failures: 3, due: time.Now()}}
	e.mailbox.markDirty("related")
	e.mailbox.setRan(version{uid: "uid-1"})
	e.begin("uid-2")
	if diff := cmp.Diff(state{version: version{uid: "uid-2"}}, e.state, cmp.AllowUnexported(state{}, version{}, throttle{})); diff != "" {
		t.Error(diff)
	}
	wantEqual(t, "related", e.mailbox.whyDirty())
	wantEqual(t, true, e.mailbox.needsRun(version{uid: "uid-1"}))
}

func TestMailbox(t *testing.T) {
	t.Run("a name that is forgotten takes no memory", func(t *testing.T) {
		s := &states{}
		s.of(request.NamespacedName)
		s.forget(request.NamespacedName)
		s.mailboxOf(request.NamespacedName).notify(signal{uid: "uid-1", end: errGone})
		wantEqual(t, true, s.mailboxOf(request.NamespacedName).needsRun(version{uid: "uid-1"}))
		wantEqual(t, 0, len(s.byName))
	})
	t.Run("the first reason interrupts a wait, and is kept", func(t *testing.T) {
		m := &mailbox{}
		readCtx := m.listen(t.Context())
		m.markDirty("one")
		wantEqual(t, true, readCtx.Err() != nil)
		readCtx = m.listen(t.Context())
		m.markDirty("two")
		wantEqual(t, false, readCtx.Err() != nil)
		wantEqual(t, "one", m.whyDirty())
	})
	t.Run("a reason that is put back replaces later ones", func(t *testing.T) {
		m := &mailbox{}
		wantEqual(t, "", m.take())
		m.markDirty("two")
		m.putBack("")
		wantEqual(t, "two", m.take())
		m.markDirty("three")
		m.putBack("two")
		wantEqual(t, "two", m.whyDirty())
	})
}

// An attempt reads live, and may have seen what no event will tell of.
func TestAnUpdateThatChangesNothingCountsWhereSomethingElseRan(t *testing.T) {
	watch := plainWatch()
	annotated := widget(withAnnotations(map[string]string{requestedAnnotation: "now"}))
	for name, test := range map[string]struct {
		ran   version
		dirty string
		want  int
	}{
		"the version ran, or runs":               {ran: versionOf(&watch, widget())},
		"another ran, which no event showed":     {ran: versionOf(&watch, annotated), want: 1},
		"none ran":                               {want: 1},
		"the version ran, and something drifted": {versionOf(&watch, widget()), drift, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, q := &states{}, newQueue(t)
			mail := &s.of(request.NamespacedName).mailbox
			mail.ran, mail.dirty = test.ran, test.dirty
			readCtx := mail.listen(t.Context())
			(&handler{watch: &watch, states: s}).Update(t.Context(), crUpdated{ObjectOld: widget(), ObjectNew: widget(withVersion("9"))}, q)
			wantEqual(t, test.want, q.Len())
			if readCtx.Err() != nil {
				t.Error("an attempt that waits loses its place in the queue for nothing")
			}
		})
	}
}

// An informer may be told nonsense: the end of an object that is still there.
func TestAnEndThatIsNoneCostsARun(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.runner.run = func(ctx context.Context, _ runner.Spec) runner.Result {
		b.handler().Delete(ctx, crDeleted{Object: widget()}, newQueue(t))
		return runner.Result{Outcome: content.Outcome{Verdict: content.Canceled}}
	}
	wantEqual(t, firstBackoff, b.mustReconcile().RequeueAfter)
	b.runner.run = succeed
	b.mustReconcile()
	wantEqual(t, 2, len(b.runner.specs))
	wantEqual(t, "True/Successful", b.conditions()["Successful"])
}

package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/pkg/content"
)

// wantPhase asserts that the one CR is counted in the phase; "" is none.
func wantPhase(t *testing.T, b *bench, when string, want Phase) {
	t.Helper()
	all := noPhases()
	if want != uncounted {
		all[want] = 1
	}
	if diff := cmp.Diff(all, b.Resources()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

func TestWhereACRStandsIsCounted(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	outcome := succeed
	during := uncounted
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		for phase, n := range b.Resources() {
			if n == 1 {
				during = phase
			}
		}
		return outcome(ctx, spec)
	}
	next := func(when string, run, after Phase) {
		t.Helper()
		during = uncounted
		b.clock.SetTime(b.clock.Now().Add(2 * time.Hour)) // Whatever waits is due.
		b.mustReconcile()
		if during != run {
			t.Errorf("%s: want phase %q during the run, got %q", when, run, during)
		}
		wantPhase(t, b, when, after)
	}
	wantPhase(t, b, "before any event", uncounted)
	b.handler().Create(t.Context(), crCreated{Object: stripped(t, widget())}, newQueue(t))
	wantPhase(t, b, "an event", PhaseWaiting)
	next("a first run", PhaseRunning, PhaseSucceeded)
	outcome = fail
	next("a run that fails", PhaseRunning, PhaseFailed)
	next("a second one, which begins from a failure", PhaseFailed, PhaseFailed)
	outcome = succeed
	next("a success", PhaseFailed, PhaseSucceeded)
	b.annotate(pausedAnnotation, "true")
	next("a pause", uncounted, PhasePaused)
	b.annotate(periodAnnotation, "soon")
	next("a refusal", uncounted, PhaseRefused)
	next("a refused one that does not change", uncounted, PhaseRefused)
	b.annotate(periodAnnotation, "")
	next("what was refused and is not any more", PhaseRunning, PhaseSucceeded)
	if err := b.client.Delete(t.Context(), b.stored()); err != nil {
		t.Fatal(err)
	}
	next("its end", uncounted, uncounted)
}

func TestWhatEndsBeforeItsTimeWaits(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.runner.run = func(context.Context, runner.Spec) runner.Result {
		return runner.Result{Outcome: content.Outcome{Verdict: content.Canceled, Reason: content.ReasonCanceled}}
	}
	b.mustReconcile()
	wantPhase(t, b, "a run that was ended", PhaseWaiting)
}

func TestACRThatCannotBeReadIsCountedAsBefore(t *testing.T) {
	unread := errors.New("not now")
	faults := interceptor.Funcs{}
	var broken error
	faults.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
		if broken != nil {
			return broken
		}
		return c.Get(ctx, key, object, o...)
	}
	b := newBench(t, plainWatch(), widget(), faults)
	b.runner.run = fail
	b.mustReconcile()
	broken = unread
	if _, err := b.reconcile(); !errors.Is(err, unread) {
		t.Fatal(err)
	}
	wantPhase(t, b, "an API server that does not answer", PhaseFailed)
}

// A manager that begins knows from the status what failed before it.
func TestAFailureOutlivesARestart(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.runner.run = fail
	b.mustReconcile()
	next := newBench(t, plainWatch(), b.stored(), interceptor.Funcs{})
	next.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		wantPhase(t, next, "the first run of the next manager", PhaseFailed)
		return succeed(ctx, spec)
	}
	next.mustReconcile()
	wantPhase(t, next, "its end", PhaseSucceeded)
}

package engine

import (
	"context"
	"errors"
	"slices"
	"testing"

	"helm.sh/helm/v4/pkg/release/common"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/pkg/content"
)

// afar is a world, and a run.Executor, whose orders are carried out elsewhere, where an earlier run may be left.
type afar struct {
	*world

	left     func() *run.Result // nil: nothing is left
	asked    []run.Attempt
	detaches bool
	written  []string
	ended    []string
}

func (a *afar) Run(ctx context.Context, spec run.Spec, attempt run.Attempt, emit func([]byte)) run.Result {
	a.asked = append(a.asked, attempt)
	if a.detaches {
		return run.Result{Outcome: content.Outcome{Verdict: content.Canceled, Reason: content.ReasonCanceled}, Detached: true}
	}
	result := a.Execute(ctx, spec, emit)
	result.Remote = true
	return result
}

func (a *afar) IsResumable(context.Context, string, run.Attempt) bool { return a.left != nil }

func (a *afar) HasEarlier(context.Context, string, run.Attempt) bool { return a.left != nil }

func (a *afar) Resume(context.Context, run.Spec, run.Attempt, func([]byte)) *run.Result {
	left := a.left
	a.left = nil
	return left()
}

func (a *afar) ResultStored(uid string) { a.written = append(a.written, uid) }

func (a *afar) Terminate(_ context.Context, uid string) error {
	a.ended = append(a.ended, uid)
	return nil
}

func newAfar(t *testing.T) *afar {
	t.Helper()
	a := &afar{world: newWorld(t, nil)}
	a.engine.Executor = a
	return a
}

func TestWhatAnEarlierRunLeftComesBeforeTheLookAtTheRelease(t *testing.T) {
	failedThere := content.Outcome{Verdict: content.Failed, Reason: content.ReasonFailed, Message: "no"}
	succeeded := content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful}
	for why, test := range map[string]struct {
		left       func(a *afar) *run.Result
		finalizing bool
		orders     []order.Action
		shown      string
		detached   bool
	}{
		"it has succeeded": {left: func(a *afar) *run.Result {
			a.has(common.StatusDeployed, a.digest())
			return &run.Result{Outcome: succeeded}
		}, shown: healthy},
		"it has succeeded at other values of objects": {left: func(a *afar) *run.Result {
			a.has(common.StatusDeployed, "other")
			return &run.Result{Outcome: succeeded}
		}, orders: []order.Action{order.Upgrade}, shown: upgraded},
		"it has failed":             {left: func(*afar) *run.Result { return &run.Result{Outcome: failedThere} }, shown: failedFor + "InstallError"},
		"its deletion has failed":   {left: func(*afar) *run.Result { return &run.Result{Outcome: failedThere} }, finalizing: true, shown: failedFor + "UninstallError"},
		"it was for something else": {left: func(*afar) *run.Result { return nil }, orders: []order.Action{order.Install}, shown: healthy},
		"the next manager has it now": {left: func(*afar) *run.Result {
			return &run.Result{Outcome: content.Outcome{Verdict: content.Canceled, Reason: content.ReasonCanceled}, Detached: true}
		}, detached: true},
	} {
		t.Run(why, func(t *testing.T) {
			a := newAfar(t)
			a.left = func() *run.Result { return test.left(a) }
			cr := resource(nil, nil)
			prepared, refusal := a.engine.Prepare(t.Context(), content.Request{Object: cr, Finalizing: test.finalizing, Interrupted: true, Requested: true})
			if refusal != nil {
				t.Fatal(*refusal)
			}
			job := content.Job{Run: content.Run{ID: "run-1"}, Kubeconfig: a.kubeconfig, Working: func(string) {}}
			if _, settled := prepared.Settled(t.Context(), job); settled || !prepared.Resumable() {
				t.Error("what is left does not count")
			}
			result := prepared.Run(t.Context(), job)
			var actions []order.Action
			for _, o := range a.orders {
				actions = append(actions, o.Action)
			}
			if !slices.Equal(actions, test.orders) || shownAs(result) != test.shown || result.Detached != test.detached {
				t.Errorf("got %q, detached %v: %s", actions, result.Detached, shownAs(result))
			}
			for _, attempt := range a.asked {
				if attempt.Interrupted {
					t.Error("the order would go on with an earlier one")
				}
			}
		})
	}
}

func TestARunElsewhereIsCountedWrittenAndLeft(t *testing.T) {
	a := newAfar(t)
	prepared := a.prepare(resource(nil, nil), false)
	job := content.Job{Run: content.Run{ID: "run-1"}, Kubeconfig: a.kubeconfig, Working: func(string) {}}
	if result := prepared.Run(t.Context(), job); shownAs(result) != healthy || result.Account.Start != "job" || result.Detached {
		t.Errorf("got %+v", result)
	}
	prepared.ResultStored()
	if !slices.Equal(a.written, []string{"u1"}) {
		t.Errorf("written: %q", a.written)
	}
	a.detaches = true
	a.has(common.StatusDeployed, "other")
	if result := a.prepare(resource(nil, nil), false).Run(t.Context(), job); !result.Detached {
		t.Errorf("got %+v", result)
	}
	// What is asked for is told apart by spec and annotations.
	requests := map[string]bool{}
	for _, cr := range []struct {
		spec        map[string]any
		annotations map[string]string
	}{{}, {spec: map[string]any{"a": "b"}}, {annotations: map[string]string{"upgrade-force": "true"}}, {}} {
		requests[a.prepare(resource(cr.spec, cr.annotations), false).(*work).execution.attempt.Request] = true
	}
	if len(requests) != 3 {
		t.Errorf("got %v", requests)
	}
	if err := errors.Join(a.engine.Terminate(t.Context(), "u2"), newWorld(t, nil).engine.Terminate(t.Context(), "u3")); err != nil || !slices.Equal(a.ended, []string{"u2"}) {
		t.Errorf("ended: %q, %v", a.ended, err)
	}
	newWorld(t, nil).prepare(resource(nil, nil), false).ResultStored() // Here there is nothing to tell.
}

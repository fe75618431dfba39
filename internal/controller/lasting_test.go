package controller

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/controller/slots"
	runs "github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/pkg/content"
)

// remote is a run.Executor whose runs outlive managers.
type remote struct {
	runs.Program

	run       func(ctx context.Context, attempt runs.Attempt) runs.Result
	live      bool
	attempts  []runs.Attempt
	concluded int
	// ended has the UIDs of CRs, and endErr is why that failed.
	ended  []string
	endErr error
}

func (r *remote) IsResumable(context.Context, string, runs.Attempt) bool { return r.live }
func (r *remote) ResultStored(string)                                    { r.concluded++ }

func (r *remote) Terminate(_ context.Context, uid string) error {
	r.ended = append(r.ended, uid)
	return r.endErr
}

func (r *remote) Run(ctx context.Context, _ runs.Spec, attempt runs.Attempt, _ func([]byte)) runs.Result {
	r.attempts = append(r.attempts, attempt)
	if r.run == nil {
		return succeedThere(ctx)
	}
	return r.run(ctx, attempt)
}

// succeedThere is succeed in a Job.
func succeedThere(ctx context.Context) runs.Result {
	ran := succeed(ctx, runner.Spec{})
	detail, err := json.Marshal(ran.Summary)
	if err != nil {
		panic(err)
	}
	return runs.Result{Outcome: ran.Outcome, Detail: detail, Started: ran.Started, Ended: ran.Ended}
}

// untilEnded detaches when the manager stops, and is canceled when the run is not wanted any more.
func untilEnded(ctx context.Context, _ runs.Attempt) runs.Result {
	<-ctx.Done()
	return runs.Result{
		Outcome:  content.Outcome{Verdict: content.Canceled, Reason: content.ReasonCanceled},
		Detached: !errors.Is(context.Cause(ctx), content.ErrUnwanted),
	}
}

// The status goes on showing the run, so that the next manager goes on with it. The run of another
// CR, or of this one after the result, does not.
func TestARunThatOutlivesTheManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
		r := &remote{run: untilEnded}
		b.engine.Jobs = r
		go func() {
			synctest.Wait()
			b.Attempts.Stop()
		}()
		b.mustReconcile()
		wantEqual(t, "True/Running", b.conditions()["Running"])
		wantEqual(t, 0, r.concluded)

		next := newBench(t, plainWatch(), b.stored(), interceptor.Funcs{})
		next.engine.Jobs = r
		r.run = nil
		next.mustReconcile()
		wantEqual(t, "True/Successful", next.conditions()["Running"])
		wantEqual(t, 1, r.concluded)
		wantEqual(t, []bool{false, true}, []bool{r.attempts[0].Interrupted, r.attempts[1].Interrupted})
		wantEqual(t, r.attempts[0].Request, r.attempts[1].Request)
		next.clock.SetTime(next.clock.Now().Add(2 * time.Hour))
		next.mustReconcile()
		wantEqual(t, []any{3, false}, []any{len(r.attempts), r.attempts[2].Interrupted})
	})
}

// What asks for another run is another request; the status and what else changes by itself is not.
func TestWhatARequestIs(t *testing.T) {
	request := func(change func(cr *unstructured.Unstructured)) string {
		cr := widget()
		change(cr)
		b := newBench(t, plainWatch(), cr, interceptor.Funcs{})
		r := &remote{}
		b.engine.Jobs = r
		b.mustReconcile()
		return r.attempts[0].Request
	}
	same := request(func(*unstructured.Unstructured) {})
	for why, test := range map[string]struct {
		change func(cr *unstructured.Unstructured)
		want   bool
	}{
		"a status":         {func(cr *unstructured.Unstructured) { cr.Object["status"] = map[string]any{"mine": "x"} }, true},
		"another spec":     {func(cr *unstructured.Unstructured) { cr.Object["spec"] = map[string]any{"size": "x"} }, false},
		"a new generation": {func(cr *unstructured.Unstructured) { cr.SetGeneration(cr.GetGeneration() + 1) }, false},
		"a person's order": {func(cr *unstructured.Unstructured) { cr.SetAnnotations(map[string]string{"a": "b"}) }, false},
	} {
		if got := request(test.change) == same; got != test.want {
			t.Errorf("%s: the request is the same: %v", why, got)
		}
	}
}

// Each event that makes a run unwanted says so to what executes it.
func TestTheEndOfARunThatIsNotWanted(t *testing.T) {
	for _, cause := range []error{errGone, errDeleted, errSuperseded, errAbandoned} {
		if !errors.Is(cause, content.ErrUnwanted) {
			t.Errorf("%v", cause)
		}
	}
	if errors.Is(errStopped, content.ErrUnwanted) || errors.Is(errFenced, content.ErrUnwanted) {
		t.Error("the stop of a manager ends no run that can outlive it")
	}
}

// The content may drop what it keeps of a run only when the result is in the status.
func TestARunIsConcludedWhenItsResultIsWritten(t *testing.T) {
	fails := 1
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if data, _ := patch.Data(obj); fails > 0 && strings.Contains(string(data), "Last reconciliation succeeded") {
				fails--
				return apierrors.NewForbidden(schema.GroupResource{}, "w", errors.New("a policy"))
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
	r := &remote{}
	b.engine.Jobs = r
	if _, err := b.reconcile(); err == nil {
		t.Fatal("the fault does not work")
	}
	wantEqual(t, 0, r.concluded)
	b.mustReconcile()
	wantEqual(t, []int{1, 1}, []int{r.concluded, len(r.attempts)})
}

// A live run takes a slot at once, so that its agent does not wait behind runs that have not begun.
func TestALiveRunHasPriority(t *testing.T) {
	for live, want := range map[bool]slots.Priority{true: slots.Live, false: slots.Changed} {
		b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
		b.engine.Jobs = &remote{live: live}
		var got slots.Priority
		b.Slots = slotsFunc(func(_ context.Context, _ schema.GroupVersionKind, priority slots.Priority) (func(), bool, error) {
			got = priority
			return func() {}, false, nil
		})
		b.mustReconcile()
		if got != want {
			t.Errorf("live %v: got the priority %v, want %v", live, got, want)
		}
	}
}

func TestTheStatusSaysWhatARunWaitsForAndWhereItExecutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
		shown := func() string {
			conditions, _, _ := unstructured.NestedSlice(b.stored().Object, "status", "conditions")
			for _, c := range conditions {
				if c := c.(map[string]any); c["type"] == "Running" {
					return c["message"].(string)
				}
			}
			return ""
		}
		b.engine.Jobs = &remote{run: func(ctx context.Context, attempt runs.Attempt) runs.Result {
			for _, step := range []struct {
				place, waits string
				want         string
				phase        Phase
			}{
				{"", "exceeded quota: q", "Running reconciliation, waiting: exceeded quota: q", PhaseWaiting},
				{"", "Unschedulable: 0/2", "Running reconciliation, waiting: Unschedulable: 0/2", PhaseWaiting},
				{"pod p", "", "Running reconciliation in pod p", PhaseRunning},
			} {
				attempt.Located(step.place, step.waits)
				time.Sleep(3 * time.Second)
				wantEqual(t, step.want, shown())
				wantPhase(t, b, step.want, step.phase)
			}
			return succeedThere(ctx)
		}}
		b.mustReconcile()
	})
}

// Nothing is to run for a CR that is paused or refused: before its status says so, the run is ended that
// an earlier manager has left.
func TestNothingThatWasLeftRunsOnForACRThatIsToHaveNoRun(t *testing.T) {
	for why, annotation := range map[string]string{"paused": "ansible.sdk.operatorframework.io/paused", "refused": "ansible.sdk.operatorframework.io/verbosity"} {
		cr := widget()
		cr.SetAnnotations(map[string]string{annotation: "true"})
		b := newBench(t, plainWatch(), cr, interceptor.Funcs{})
		r := &remote{endErr: errors.New("it can't be ended")}
		b.engine.Jobs = r
		if _, err := b.reconcile(); !errors.Is(err, r.endErr) {
			t.Errorf("%s: got %v", why, err)
		}
		wantEqual(t, "", b.conditions()["Running"])
		r.endErr = nil
		b.mustReconcile()
		uid := string(cr.GetUID())
		wantEqual(t, []string{uid, uid}, r.ended)
		wantEqual(t, 0, len(r.attempts))
		if got := b.conditions()["Running"]; !strings.HasPrefix(got, "False/") {
			t.Errorf("%s: Running is %q", why, got)
		}
	}
}

// An earlier manager may have been killed after it had written the result.
func TestWhatWasLeftOfARunWhoseResultIsWrittenIsRemoved(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.engine.Jobs = &remote{run: func(ctx context.Context, _ runs.Attempt) runs.Result {
		ran := succeed(ctx, runner.Spec{})
		ran.Summary.Completion = b.Clock.Now()
		detail, err := json.Marshal(ran.Summary)
		if err != nil {
			t.Error(err)
		}
		return runs.Result{Outcome: ran.Outcome, Detail: detail}
	}}
	b.mustReconcile()
	cr := b.stored()
	cr.SetResourceVersion("")
	next, r := newBench(t, plainWatch(), cr, interceptor.Funcs{}), &remote{}
	next.engine.Jobs = r
	next.mustReconcile()
	wantEqual(t, []string{"uid-1"}, r.ended)
	wantEqual(t, 0, len(r.attempts))
}

// elapsed is an observer that keeps how long runs took.
type elapsed struct {
	content.ObserverDefaults

	all []time.Duration
}

func (e *elapsed) RunEnded(_ content.Run, _ content.Result, took time.Duration) {
	e.all = append(e.all, took)
}

// The log and the metrics show how long a run took, whichever manager began it.
func TestHowLongARunTookThatWasAdopted(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.engine.Jobs = &remote{run: func(ctx context.Context, _ runs.Attempt) runs.Result {
		result := succeedThere(ctx)
		result.Remote, result.Ended = true, time.Now()
		result.Started = result.Ended.Add(-20 * time.Minute)
		return result
	}}
	var took elapsed
	b.Observers = append(b.Observers, &took)
	b.mustReconcile()
	wantEqual(t, []time.Duration{20 * time.Minute}, took.all)
}

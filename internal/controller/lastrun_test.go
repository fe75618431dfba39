package controller

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Of a run that Ansible did not sum up, the conditions have no time, and of one that fails as the
// one before nothing in them changes.
func TestTheStatusSaysWhenTheLastRunEndedAndTheRetryIs(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.engine.Version = content.Version{Name: "1.4.0", Digest: "d"}
	ends := func(run func(context.Context, runner.Spec) runner.Result) {
		b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
			b.clock.SetTime(b.clock.Now().Add(time.Minute))
			return run(ctx, spec)
		}
	}
	check := func(next time.Duration) {
		t.Helper()
		want := status.LastRun{Ended: b.clock.Now(), Version: b.engine.Version}
		if next > 0 {
			want.Next = b.clock.Now().Add(next)
		}
		if diff := cmp.Diff(want, status.ReadRun(b.stored()), cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	ends(func(context.Context, runner.Spec) runner.Result {
		return runner.Result{Outcome: content.Outcome{Verdict: content.Failed, Reason: content.ReasonTimeout, Message: "too long"}}
	})
	b.mustReconcile()
	check(time.Second)
	b.mustReconcileDue()
	check(2 * time.Second)
	ends(succeed)
	b.mustReconcileDue()
	check(0) // The period tells it.
	ends(func(ctx context.Context, spec runner.Spec) runner.Result {
		result := succeed(ctx, spec)
		result.Summary.RequeueAfter = 5 * time.Minute
		return result
	})
	b.mustReconcileDue()
	check(5 * time.Minute)
}

package controller

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
)

// tasks are the runs of a bench: each begins its tasks after so many seconds, and
// ends with the last.
type tasks []struct {
	after int
	name  string
}

func (all tasks) Run(ctx context.Context, spec runner.Spec, observe func(jobevent.Event)) runner.Result {
	began := time.Now()
	for _, task := range all {
		time.Sleep(time.Duration(task.after)*time.Second - time.Since(began))
		observe(jobevent.Event{Kind: jobevent.TaskStart, Task: task.name})
	}
	return succeed(ctx, spec)
}

func (tasks) Remove(string) error { return nil }

func TestTheRunningTaskIsShown(t *testing.T) {
	for why, test := range map[string]struct {
		tasks tasks
		want  []string
	}{
		"not of a short run": {tasks{{0, "a"}, {5, "b"}, {9, "end"}}, nil},
		"once for a task that takes long, and every ten seconds at most": {
			tasks{{1, "a"}, {45, "b"}, {46, "c"}, {47, "d"}, {65, "end"}}, []string{"a", "d"},
		},
		"not before a task has begun": {tasks{{25, "a"}, {35, "end"}}, []string{"a"}},
	} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var shown []string
				b := newBench(t, plainWatch(), widget(), interceptor.Funcs{
					SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
						data, err := patch.Data(obj)
						if _, after, found := strings.Cut(string(data), `task \"`); err == nil && found {
							name, _, _ := strings.Cut(after, `\"`)
							shown = append(shown, name)
						}
						return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
					},
				})
				b.engine.Runner = test.tasks
				b.mustReconcile()
				wantEqual(t, test.want, shown)
				wantEqual(t, "True/Successful", b.conditions()["Running"])
			})
		})
	}
}

// defective begins a task and panics.
type defective struct{ tasks }

func (defective) Run(_ context.Context, _ runner.Spec, observe func(jobevent.Event)) runner.Result {
	observe(jobevent.Event{Kind: jobevent.TaskStart, Task: "a"})
	panic("a defect")
}

func TestNothingIsShownOfARunThatPanicked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, writes := false, 0
		b := newBench(t, plainWatch(), widget(), interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				if ended {
					writes++
				}
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		})
		b.engine.Runner = defective{}
		b.mustReconcile()
		ended = true
		time.Sleep(10 * progressPause)
		synctest.Wait()
		wantEqual(t, "True/RunnerCrashed", b.conditions()["Failure"])
		if writes > 0 {
			t.Errorf("%d writes after its result", writes)
		}
	})
}

func TestATaskThatIsShownLateChangesNoResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late func() error
		b := newBench(t, plainWatch(), widget(), interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				if data, _ := patch.Data(obj); strings.Contains(string(data), "task") {
					late = func() error { return c.SubResource(sub).Patch(context.Background(), obj, patch, opts...) }
					<-ctx.Done() // The run is over, and the request is still on its way.
					return ctx.Err()
				}
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		})
		b.engine.Runner = tasks{{0, "a"}, {12, "end"}}
		b.mustReconcile()
		if err := late(); err == nil {
			t.Error("want the API server to refuse what comes late")
		}
		wantEqual(t, "True/Successful", b.conditions()["Running"])
	})
}

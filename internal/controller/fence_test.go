package controller

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A manager may lose its lease between any two steps of an attempt. From then on
// it runs nothing and writes nothing, and has no error to tell.
func TestAFencedManagerDoesNothing(t *testing.T) {
	for why, test := range map[string]struct {
		// closes is after how many answers "yes" the fence says no.
		closes             int
		wantRuns, wantSent int
	}{
		"before the first write":             {0, 0, 0},
		"between Running and the run":        {1, 0, 1},
		"during the run":                     {2, 1, 1},
		"before the result is written":       {3, 1, 1},
		"after the result: all had its time": {4, 1, 2},
	} {
		t.Run(why, func(t *testing.T) {
			sent, asked := 0, 0
			b := newBench(t, plainWatch(), widget(), interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
					sent++
					return c.SubResource(sub).Patch(ctx, o, p, opts...)
				},
			})
			b.Fence = func() bool {
				asked++
				return asked <= test.closes
			}
			if _, err := b.reconcile(); err != nil {
				t.Errorf("want no error, got %v", err)
			}
			if len(b.runner.specs) != test.wantRuns || sent != test.wantSent {
				t.Errorf("want %d runs and %d writes, got %d and %d", test.wantRuns, test.wantSent, len(b.runner.specs), sent)
			}
			if b.state().unwritten {
				t.Error("want nothing to be kept for later")
			}
			if test.wantSent < 2 && len(b.recorder.Events) > 0 {
				t.Error("want no Event without a result")
			}
		})
	}
}

func TestWhatAFencedManagerCannotReadIsNoError(t *testing.T) {
	unreachable := errors.New("the connection was closed")
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return unreachable
		},
	})
	held := true
	b.Fence = func() bool { return held }
	if _, err := b.reconcile(); !errors.Is(err, unreachable) {
		t.Errorf("want an error of a leader to be told, got %v", err)
	}
	held = false
	if _, err := b.reconcile(); err != nil {
		t.Errorf("want no noise, got %v", err)
	}
}

// A result is written until it lands, however long that takes, but not by a
// manager that has lost its lease meanwhile.
func TestAFencedManagerGivesUpWriting(t *testing.T) {
	held := true
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if _, done, _ := unstructured.NestedMap(o.(*unstructured.Unstructured).Object, "status"); done {
				held = false // The second write is the result.
				return errors.New("the connection was closed")
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	b.Fence = func() bool { return held }
	if _, err := b.reconcile(); err != nil {
		t.Errorf("want no error, got %v", err)
	}
	if held {
		t.Error("the test saw no second write")
	}
}

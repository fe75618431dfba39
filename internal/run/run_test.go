package run

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/pkg/content"
)

// What asks for another run is another request; what changes by itself is not.
func TestWhatARequestIs(t *testing.T) {
	attempt := func(change func(r *content.Request, more map[string]any)) Attempt {
		cr := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
		cr.SetGeneration(3)
		r, more := content.Request{Object: cr}, map[string]any{"version": "1"}
		change(&r, more)
		return NewAttempt(r, more)
	}
	same := attempt(func(*content.Request, map[string]any) {})
	if same.Generation != 3 || same.Interrupted || same.Finalizing || same.Located != nil {
		t.Errorf("got %+v", same)
	}
	for why, test := range map[string]struct {
		change func(r *content.Request, more map[string]any)
		want   bool
	}{
		"a status":           {func(r *content.Request, _ map[string]any) { r.Object.Object["status"] = "x" }, true},
		"a resourceVersion":  {func(r *content.Request, _ map[string]any) { r.Object.SetResourceVersion("9") }, true},
		"an interruption":    {func(r *content.Request, _ map[string]any) { r.Interrupted = true }, true},
		"a user's wish":      {func(r *content.Request, _ map[string]any) { r.Requested = true }, true},
		"a generation":       {func(r *content.Request, _ map[string]any) { r.Object.SetGeneration(4) }, false},
		"an annotation":      {func(r *content.Request, _ map[string]any) { r.Object.SetAnnotations(map[string]string{"a": "b"}) }, false},
		"values":             {func(r *content.Request, _ map[string]any) { r.Values = map[string]any{"size": int64(2)} }, false},
		"overrides":          {func(r *content.Request, _ map[string]any) { r.Overrides = map[string]any{"a": "b"} }, false},
		"a finalizer":        {func(r *content.Request, _ map[string]any) { r.Finalizing = true }, false},
		"the content's part": {func(_ *content.Request, more map[string]any) { more["version"] = "2" }, false},
	} {
		if got := attempt(test.change); (got.Request == same.Request) != test.want {
			t.Errorf("with %s, the request is the same: %t", why, !test.want)
		}
	}
}

func TestOfARunElsewhereTheAccountSaysHowLongItTook(t *testing.T) {
	at := time.Unix(1000, 0)
	r := Result{Started: at, Ended: at.Add(time.Minute)}
	if got := r.Account(); got.Start != "" || got.Duration != 0 {
		t.Errorf("here: %+v", got)
	}
	r.Remote = true
	if got := r.Account(); got.Start != StartJob || got.Duration != time.Minute {
		t.Errorf("elsewhere: %+v", got)
	}
	r.Ended = at.Add(-time.Second) // The clocks of two machines.
	if got := r.Account(); got.Duration != 0 {
		t.Errorf("with another clock: %+v", got)
	}
}

// Nothing of a Program's runs outlives the manager.
func TestAProgramIsAnExecutor(t *testing.T) {
	var x Executor = Program(func(_ context.Context, spec Spec, emit func([]byte)) Result {
		emit([]byte(spec.ID))
		return Result{Detail: spec.Payload}
	})
	var events string
	result := x.Run(t.Context(), Spec{ID: "r", Payload: []byte("p")}, Attempt{Interrupted: true}, func(event []byte) { events += string(event) })
	if events != "r" || string(result.Detail) != "p" || result.Remote || result.Detached {
		t.Errorf("got %+v, %q", result, events)
	}
	attempt := Attempt{Interrupted: true}
	if x.IsResumable(t.Context(), "u", attempt) || x.HasEarlier(t.Context(), "u", attempt) || x.Resume(t.Context(), Spec{}, attempt, nil) != nil {
		t.Error("something is left of an earlier run")
	}
	x.ResultStored("u")
	if x.Terminate(t.Context(), "u") != nil || x.Remove("u") != nil {
		t.Error("there is something to remove")
	}
}

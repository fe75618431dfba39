package engine

import (
	"testing"

	"github.com/ensign-operator/ensign/pkg/content"
)

func TestWhatWasRefusedIsNotTriedAgain(t *testing.T) {
	no := content.Outcome{Verdict: content.Failed, Reason: content.ReasonInvalidSpec, Message: "spec.a: no"}
	w := newWorld(t, nil)
	w.outcome = no
	cr := resource(nil, nil)
	w.run(t.Context(), cr, false)
	if len(w.orders) != 1 {
		t.Fatalf("got the orders %v", w.orders)
	}
	refused := func(r content.Request) *content.Outcome {
		_, outcome := w.engine.Prepare(t.Context(), r)
		return outcome
	}
	if got := refused(content.Request{Object: cr}); got == nil || got.Reason != no.Reason || got.Message != no.Message {
		t.Errorf("the same again: got %+v", got)
	}
	changed := resource(map[string]any{"a": "other"}, nil)
	changed.SetUID(cr.GetUID())
	for why, request := range map[string]content.Request{
		"somebody asks":     {Object: cr, Requested: true},
		"it is deleted":     {Object: cr, Finalizing: true},
		"its spec changed":  {Object: changed},
		"it is another one": {Object: resource(nil, map[string]string{"another": "one"})},
	} {
		if why == "it is another one" {
			request.Object.SetUID("another")
		}
		if got := refused(request); got != nil {
			t.Errorf("%s: got %+v", why, got)
		}
	}
	if err := w.engine.Remove(string(cr.GetUID())); err != nil || refused(content.Request{Object: cr}) != nil {
		t.Errorf("it is not forgotten: %v", err)
	}
}

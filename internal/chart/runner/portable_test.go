package runner

import (
	"slices"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/values"
	"github.com/ensign-operator/ensign/pkg/content"
)

// What runs in another pod is the same order, and nothing that is hidden leaves that pod.
func TestAnOrderIsCarriedOutElsewhereAsHere(t *testing.T) {
	whole := int64(1<<53 + 1)
	spec := someSpec(nil)
	spec.Order.Values = map[string]any{"whole": whole, "texts": []any{"a", 1.5}}
	spec.Hidden = values.NewMask("correct horse", map[string]any{"port": int64(4_000_123)})
	portable, err := spec.Portable()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(portable)
	if err != nil {
		t.Fatal(err)
	}
	if got.Order.Values["whole"] != whole || got.Order.Action != order.Install || !slices.Equal(got.Order.Values["texts"].([]any), []any{"a", 1.5}) || got.UID != spec.UID || got.Timeout != spec.Timeout {
		t.Errorf("got the order %+v", got.Order)
	}
	var told []string
	spec.Working, spec.Left = func(step string) { told = append(told, "working "+step) }, func(what string) { told = append(told, "left "+what) }
	result := newRunner(t, "betrayal").Execute(t.Context(), portable, spec.Hear)
	if result.Started.IsZero() || result.Ended.IsZero() || !slices.Equal(told, []string{"working install"}) {
		t.Errorf("got %+v, and was told %q", result, told)
	}
	spec.Hear([]byte("{}"))
	spec.Hear([]byte("nonsense"))
	spec.Hear([]byte(`{"left":"ConfigMap a/b"}`))
	if !slices.Equal(told, []string{"working install", "left ConfigMap a/b"}) {
		t.Errorf("was told %q", told)
	}
	outcome := result.Outcome
	if outcome.Verdict != content.Failed || strings.Contains(outcome.Message, "correct") || strings.Contains(outcome.Message, "4000123") || strings.Count(outcome.Message, "(redacted)") != 2 {
		t.Errorf("got %+v", outcome)
	}
}

func TestAnOrderWithoutSecretsAndOneThatCannotBeRead(t *testing.T) {
	portable, err := someSpec(nil).Portable()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Decode(portable); err != nil || got.Hidden != nil || got.Hidden.Text("a") != "a" {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, text := range []string{"", "[]", `{"Order":[]}`, `{"Hidden":{}}`} {
		portable.Payload = []byte(text)
		if _, err := Decode(portable); err == nil {
			t.Errorf("%q is taken for an order", text)
		}
		if got := (&Runner{}).Execute(t.Context(), portable, func([]byte) {}); got.Outcome.Reason != content.ReasonRunnerCrashed || got.Ended.IsZero() {
			t.Errorf("%q comes to %+v", text, got)
		}
	}
}

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
	text, err := spec.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if got.Order.Values["whole"] != whole || got.Order.Action != order.Install || !slices.Equal(got.Order.Values["texts"].([]any), []any{"a", 1.5}) {
		t.Errorf("got the order %+v", got.Order)
	}
	got.UID, got.ID, got.Working = "uid-1", "run-1", func(string) {}
	outcome := newRunner(t, "betrayal").Run(t.Context(), got)
	if outcome.Verdict != content.Failed || strings.Contains(outcome.Message, "correct") || strings.Contains(outcome.Message, "4000123") || strings.Count(outcome.Message, "(redacted)") != 2 {
		t.Errorf("got %+v", outcome)
	}
}

func TestAnOrderWithoutSecretsAndOneThatCannotBeRead(t *testing.T) {
	text, err := someSpec(nil).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Decode(text); err != nil || got.Hidden != nil || got.Hidden.Text("a") != "a" {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, text := range []string{"", "[]", `{"Order":[]}`, `{"Hidden":{}}`} {
		if _, err := Decode([]byte(text)); err == nil {
			t.Errorf("%q is taken for an order", text)
		}
	}
}

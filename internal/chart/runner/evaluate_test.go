package runner

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

func TestTemplatesAreEvaluatedWithTheManagersEnvironment(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	got, err := newRunner(t, "success").Evaluate([]string{"{{ x }}"})
	if diff := cmp.Diff([]order.Evaluated{{Text: "{{ x }}b"}}, got); err != nil || diff != "" {
		t.Errorf("got %v (-want +got):\n%s", err, diff)
	}
	if _, err := newRunner(t, "failure").Evaluate([]string{"{{ x }}"}); err == nil || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("want what chart-exec said, got %v", err)
	}
}

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

func TestAChartIsRenderedWithTheEnvironmentOfARun(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	got, err := newRunner(t, "success").Preview(t.Context(), order.Order{Action: order.Preview}, []byte("config"))
	if err != nil || !strings.HasSuffix(got.Manifests[0], "/kubeconfig") || got.Manifests[1] != "" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := newRunner(t, "failure").Preview(t.Context(), order.Order{Action: order.Preview}, []byte("config")); err == nil || err.Error() != "no such value" {
		t.Errorf("want what chart-exec said, got %v", err)
	}
}

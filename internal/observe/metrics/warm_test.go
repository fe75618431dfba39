package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ensign-operator/ensign/internal/observe/metrics"
)

func TestFallbacksAreCountedByProgramAndReason(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	f, err := metrics.NewFallbacks(registry)
	if err != nil {
		t.Fatal(err)
	}
	f.Count("ansible-runner", "starting")
	f.Count("python", "arguments")
	f.Count("ansible-runner", "starting")
	const want = `
# HELP ansible_operator_warm_fallbacks_total Programs that were started cold although runs may be warm, by program and reason.
# TYPE ansible_operator_warm_fallbacks_total counter
ansible_operator_warm_fallbacks_total{program="ansible-runner",reason="starting"} 2
ansible_operator_warm_fallbacks_total{program="python",reason="arguments"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if _, err := metrics.NewFallbacks(registry); err == nil {
		t.Error("want an error for a name that is taken")
	}
}

package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ensign-operator/ensign/internal/observe/metrics"
)

func TestColdRunsAndModulesAreCountedByReason(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	w := metrics.NewWarm()
	if err := w.Register(registry); err != nil {
		t.Fatal(err)
	}
	w.Fallback("starting")
	w.Fallback("starting")
	w.Module("")
	w.Module("become")
	w.Off("parsed")
	const want = `
# HELP ansible_operator_warm_fallbacks_total Runs that were cold although they may be warm, by reason.
# TYPE ansible_operator_warm_fallbacks_total counter
ansible_operator_warm_fallbacks_total{reason="starting"} 2
# HELP ensign_operator_module_runs_total Modules of warm runs, by mode (warm or cold) and the reason of cold ones.
# TYPE ensign_operator_module_runs_total counter
ensign_operator_module_runs_total{mode="cold",reason="become"} 1
ensign_operator_module_runs_total{mode="warm",reason=""} 1
# HELP ensign_operator_warm_mechanism_off 1 for a mechanism of warm runs that is off because something that it needs is not installed.
# TYPE ensign_operator_warm_mechanism_off gauge
ensign_operator_warm_mechanism_off{mechanism="parsed"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if err := metrics.NewWarm().Register(registry); err == nil {
		t.Error("want an error for a name that is taken")
	}
}

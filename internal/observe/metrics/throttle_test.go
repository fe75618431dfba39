package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ensign-operator/ensign/internal/observe/metrics"
)

func TestTriggersThatWaitAreCountedByWhatHoldsThem(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, err := metrics.New(registry, metrics.Build{})
	if err != nil {
		t.Fatal(err)
	}
	m.InitWatch(kind("K"))
	m.TriggerThrottled(kind("K"), true)
	m.TriggerThrottled(kind("K"), false)
	m.TriggerThrottled(kind("K"), false)
	m.SetSlowed(kind("K"), 3)
	want := `
# HELP ensign_operator_throttled_triggers_total How often a resource began to wait with a trigger of its next run: for the pause after a failure (backoff), or because it was triggered too often (bucket).
# TYPE ensign_operator_throttled_triggers_total counter
ensign_operator_throttled_triggers_total{GVK="g/v1, Kind=K",by="backoff"} 1
ensign_operator_throttled_triggers_total{GVK="g/v1, Kind=K",by="bucket"} 2
# HELP ensign_operator_slowed_resources Resources whose runs are slowed down because of too many triggers.
# TYPE ensign_operator_slowed_resources gauge
ensign_operator_slowed_resources{GVK="g/v1, Kind=K"} 3
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "ensign_operator_throttled_triggers_total", "ensign_operator_slowed_resources"); err != nil {
		t.Error(err)
	}
}

package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/observe/metrics"
)

type waiting map[schema.GroupVersionKind]int

func (w waiting) Waiting(watch schema.GroupVersionKind) int { return w[watch] }

func TestSlots(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, err := metrics.New(registry, metrics.Build{})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.RegisterSlots(waiting{kind("K"): 3}, 4, []schema.GroupVersionKind{kind("K"), kind("L")}); err != nil {
		t.Fatal(err)
	}
	m.ObserveWait(kind("K"), 2*time.Second)
	want := `
# HELP ansible_operator_slot_wait_seconds How long runs waited for a slot, in seconds.
# TYPE ansible_operator_slot_wait_seconds histogram
ansible_operator_slot_wait_seconds_bucket{GVK="g/v1, Kind=K",le="0.01"} 0
ansible_operator_slot_wait_seconds_bucket{GVK="g/v1, Kind=K",le="0.1"} 0
ansible_operator_slot_wait_seconds_bucket{GVK="g/v1, Kind=K",le="1"} 0
ansible_operator_slot_wait_seconds_bucket{GVK="g/v1, Kind=K",le="5"} 1
ansible_operator_slot_wait_seconds_bucket{GVK="g/v1, Kind=K",le="15"} 1
ansible_operator_slot_wait_seconds_bucket{GVK="g/v1, Kind=K",le="60"} 1
ansible_operator_slot_wait_seconds_bucket{GVK="g/v1, Kind=K",le="300"} 1
ansible_operator_slot_wait_seconds_bucket{GVK="g/v1, Kind=K",le="1800"} 1
ansible_operator_slot_wait_seconds_bucket{GVK="g/v1, Kind=K",le="3600"} 1
ansible_operator_slot_wait_seconds_bucket{GVK="g/v1, Kind=K",le="+Inf"} 1
ansible_operator_slot_wait_seconds_sum{GVK="g/v1, Kind=K"} 2
ansible_operator_slot_wait_seconds_count{GVK="g/v1, Kind=K"} 1
# HELP ansible_operator_slots How many runs may be live at once, of all watches together.
# TYPE ansible_operator_slots gauge
ansible_operator_slots 4
# HELP ansible_operator_waiting_runs Resources that wait for a slot.
# TYPE ansible_operator_waiting_runs gauge
ansible_operator_waiting_runs{GVK="g/v1, Kind=K"} 3
ansible_operator_waiting_runs{GVK="g/v1, Kind=L"} 0
`
	names := []string{"ansible_operator_slot_wait_seconds", "ansible_operator_slots", "ansible_operator_waiting_runs"}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

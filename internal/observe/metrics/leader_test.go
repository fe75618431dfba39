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

// leader is a manager that may lead, and has looked at the CRs of one kind alone.
type leader struct{ leads bool }

func (l leader) Leads() bool { return l.leads }

func (leader) Slots() int { return 4 }

func (leader) Waiting(watch schema.GroupVersionKind) int {
	return map[schema.GroupVersionKind]int{kind("K"): 3}[watch]
}

func (leader) Resources(watch schema.GroupVersionKind) map[string]int {
	return map[schema.GroupVersionKind]map[string]int{kind("K"): {"failed": 2, "succeeded": 0}}[watch]
}

func TestWhatALeaderShows(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, err := metrics.New(registry, metrics.Build{})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.RegisterLeader(leader{true}, []schema.GroupVersionKind{kind("K"), kind("L")}); err != nil {
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
# HELP ansible_operator_slots How many runs may be live at once, of all watches together; of a manager that leads.
# TYPE ansible_operator_slots gauge
ansible_operator_slots 4
# HELP ansible_operator_waiting_runs Resources that wait for a slot; of a manager that leads.
# TYPE ansible_operator_waiting_runs gauge
ansible_operator_waiting_runs{GVK="g/v1, Kind=K"} 3
ansible_operator_waiting_runs{GVK="g/v1, Kind=L"} 0
# HELP ensign_operator_resources Resources by state: those that failed stay so while the next run waits and runs; of a manager that leads.
# TYPE ensign_operator_resources gauge
ensign_operator_resources{GVK="g/v1, Kind=K",state="failed"} 2
ensign_operator_resources{GVK="g/v1, Kind=K",state="succeeded"} 0
`
	names := []string{"ansible_operator_slot_wait_seconds", "ansible_operator_slots", "ansible_operator_waiting_runs", "ensign_operator_resources"}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestAStandbyShowsNoCapacityAndNoResources(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, err := metrics.New(registry, metrics.Build{})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.RegisterLeader(leader{false}, []schema.GroupVersionKind{kind("K")}); err != nil {
		t.Fatal(err)
	}
	n, err := testutil.GatherAndCount(registry, "ansible_operator_slots", "ansible_operator_waiting_runs", "ensign_operator_resources")
	if n != 0 || err != nil {
		t.Errorf("%d series, %v", n, err)
	}
}

package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ensign-operator/ensign/internal/observe/metrics"
)

func TestFollowedKindsHaveOneState(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, err := metrics.New(registry, metrics.Build{})
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"starting", "failing", "live"} {
		m.SetFollowed("related", "secrets", "", state)
		m.SetFollowed("related", "secrets", "a", "starting")
		m.SetFollowed("related", "jobs.batch", "", state)
	}
	m.SetFollowed("related", "jobs.batch", "", "")
	want := `
# HELP ansible_operator_watched_kind Kinds of children and references that are watched, by state; always 1.
# TYPE ansible_operator_watched_kind gauge
ansible_operator_watched_kind{namespace="",purpose="related",resource="secrets",state="live"} 1
ansible_operator_watched_kind{namespace="a",purpose="related",resource="secrets",state="starting"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "ansible_operator_watched_kind"); err != nil {
		t.Error(err)
	}
}

func TestUnknownWritesAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry, metrics.Build{})
	if err != nil {
		t.Fatal(err)
	}
	m.CountUnknownWrite("no response")
	m.CountUnknownWrite("no response")
	want := `
# HELP ensign_operator_unknown_writes_total Writes of runs whose result is not known, by cause.
# TYPE ensign_operator_unknown_writes_total counter
ensign_operator_unknown_writes_total{cause="no response"} 2
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "ensign_operator_unknown_writes_total"); err != nil {
		t.Error(err)
	}
}

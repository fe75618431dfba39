package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ensign-operator/ensign/internal/metrics"
)

type cache struct{}

func (cache) Bytes() int64 { return 4096 }
func (cache) Kinds() int   { return 2 }

func TestReadCache(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, err := metrics.New(registry, metrics.Build{})
	if err != nil {
		t.Fatal(err)
	}
	read, err := m.ShowReads()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.ShowReadCache(cache{}); err != nil {
		t.Fatal(err)
	}
	for _, result := range []string{"hit", "miss", "hit"} {
		read(result)
	}
	want := `
# HELP ansible_operator_proxy_reads_total Reads of runs: hit from the cache, miss while it could not answer, bypass where only the API server can.
# TYPE ansible_operator_proxy_reads_total counter
ansible_operator_proxy_reads_total{cache="bypass"} 0
ansible_operator_proxy_reads_total{cache="hit"} 2
ansible_operator_proxy_reads_total{cache="miss"} 1
# HELP ansible_operator_read_cache_bytes What the objects take that are kept for reads of runs.
# TYPE ansible_operator_read_cache_bytes gauge
ansible_operator_read_cache_bytes 4096
# HELP ansible_operator_read_cache_kinds Kinds that are kept for reads of runs, those of a namespace each for itself.
# TYPE ansible_operator_read_cache_kinds gauge
ansible_operator_read_cache_kinds 2
`
	names := []string{"ansible_operator_proxy_reads_total", "ansible_operator_read_cache_bytes", "ansible_operator_read_cache_kinds"}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
	if err := m.ShowReadCache(cache{}); err == nil {
		t.Error("want an error for a second cache")
	}
}

package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// ReadCache tells how much it keeps. readcache.Cache is such.
type ReadCache interface {
	// Bytes is what the kept objects take.
	Bytes() int64
	// Kinds is how many kinds are kept, those of a namespace each for itself.
	Kinds() int
}

// ShowReads registers a counter of the reads of runs by what became of them, hit, miss
// or bypass, and gives what counts them.
func (m *Metrics) ShowReads() (read func(result string), err error) {
	reads := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ansible_operator_proxy_reads_total",
		Help: "Reads of runs: hit from the cache, miss while it could not answer, bypass where only the API server can.",
	}, []string{"cache"})
	for _, result := range []string{"hit", "miss", "bypass"} {
		reads.WithLabelValues(result)
	}
	if err := m.registry.Register(reads); err != nil {
		return nil, fmt.Errorf("register a metric: %w", err)
	}
	return func(result string) { reads.WithLabelValues(result).Inc() }, nil
}

// ShowReadCache registers gauges of the cache.
func (m *Metrics) ShowReadCache(c ReadCache) error {
	bytes := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ansible_operator_read_cache_bytes", Help: "What the objects take that are kept for reads of runs.",
	}, func() float64 { return float64(c.Bytes()) })
	kinds := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ansible_operator_read_cache_kinds", Help: "Kinds that are kept for reads of runs, those of a namespace each for itself.",
	}, func() float64 { return float64(c.Kinds()) })
	for _, collector := range []prometheus.Collector{bytes, kinds} {
		if err := m.registry.Register(collector); err != nil {
			return fmt.Errorf("register a metric: %w", err)
		}
	}
	return nil
}

package metrics

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Slots tell who waits for a run. slots.Slots are such.
type Slots interface {
	// Waiting is how many CRs of the watch wait for a slot.
	Waiting(gvk string) int
}

// ShowSlots registers gauges of the slots, which are limit in all, for the watches.
func (m *Metrics) ShowSlots(s Slots, limit int, gvks []string) error {
	all := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ansible_operator_slots", Help: "How many runs may be live at once, of all watches together.",
	})
	all.Set(float64(limit))
	collectors := []prometheus.Collector{all}
	for _, gvk := range gvks {
		collectors = append(collectors, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ansible_operator_waiting_runs", Help: "Resources that wait for a slot.", ConstLabels: prometheus.Labels{labelGVK: gvk},
		}, func() float64 { return float64(s.Waiting(gvk)) }))
	}
	for _, c := range collectors {
		if err := m.registry.Register(c); err != nil {
			return fmt.Errorf("register a metric: %w", err)
		}
	}
	return nil
}

// Waited notes how long a CR of the watch waited for its slot.
func (m *Metrics) Waited(gvk string, wait time.Duration) {
	m.waits.WithLabelValues(gvk).Observe(wait.Seconds())
}

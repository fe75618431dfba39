package metrics

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Slots is implemented by slots.Slots of the controller.
type Slots interface {
	// Waiting returns how many CRs of the watch wait for a slot.
	Waiting(watch schema.GroupVersionKind) int
}

// RegisterSlots registers a gauge of the number of slots, which is limit, and a gauge of the CRs
// that wait for a slot for each watch.
func (m *Metrics) RegisterSlots(s Slots, limit int, watches []schema.GroupVersionKind) error {
	slots := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ansible_operator_slots", Help: "How many runs may be live at once, of all watches together.",
	})
	slots.Set(float64(limit))
	collectors := []prometheus.Collector{slots}
	for _, watch := range watches {
		collectors = append(collectors, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ansible_operator_waiting_runs", Help: "Resources that wait for a slot.", ConstLabels: prometheus.Labels{labelGVK: watch.String()},
		}, func() float64 { return float64(s.Waiting(watch)) }))
	}
	for _, c := range collectors {
		if err := m.registry.Register(c); err != nil {
			return fmt.Errorf("register a metric: %w", err)
		}
	}
	return nil
}

// ObserveWait adds the time that a CR of the watch has waited for a slot.
func (m *Metrics) ObserveWait(watch schema.GroupVersionKind, wait time.Duration) {
	m.waits.WithLabelValues(watch.String()).Observe(wait.Seconds())
}

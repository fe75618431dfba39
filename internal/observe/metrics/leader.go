package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Leader has the metrics of a manager that leads. Another manager has no capacity: its slots run
// nothing, and it has looked at no resource.
type Leader interface {
	// Leads reports whether this manager leads.
	Leads() bool
	// Slots returns how many runs may execute at once.
	Slots() int
	// Waiting returns how many CRs of the watch wait for a slot.
	Waiting(watch schema.GroupVersionKind) int
	// Resources returns how many CRs of the watch are in each state; nil if nothing is known of
	// them, because their kind is not served.
	Resources(watch schema.GroupVersionKind) map[string]int
}

// leader collects the metrics of a Leader when they are asked for.
type leader struct {
	Leader

	watches                   []schema.GroupVersionKind
	slots, waiting, resources *prometheus.Desc
}

// RegisterLeader registers the metrics of the manager while it leads.
func (m *Metrics) RegisterLeader(l Leader, watches []schema.GroupVersionKind) error {
	return register(m.registry, &leader{
		Leader: l, watches: watches,
		slots:   prometheus.NewDesc("ansible_operator_slots", "How many runs may be live at once, of all watches together; of a manager that leads.", nil, nil),
		waiting: prometheus.NewDesc("ansible_operator_waiting_runs", "Resources that wait for a slot; of a manager that leads.", []string{labelGVK}, nil),
		resources: prometheus.NewDesc("ensign_operator_resources",
			"Resources by state: those that failed stay so while the next run waits and runs; of a manager that leads.", []string{labelGVK, labelState}, nil),
	})
}

// Describe implements prometheus.Collector.
func (l *leader) Describe(to chan<- *prometheus.Desc) {
	to <- l.slots
	to <- l.waiting
	to <- l.resources
}

// Collect implements prometheus.Collector.
func (l *leader) Collect(to chan<- prometheus.Metric) {
	if !l.Leads() {
		return
	}
	gauge := func(of *prometheus.Desc, value int, labels ...string) {
		to <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, float64(value), labels...)
	}
	gauge(l.slots, l.Slots())
	for _, watch := range l.watches {
		gauge(l.waiting, l.Waiting(watch), watch.String())
		for state, number := range l.Resources(watch) {
			gauge(l.resources, number, watch.String(), state)
		}
	}
}

// ObserveWait adds the time that a CR of the watch has waited for a slot.
func (m *Metrics) ObserveWait(watch schema.GroupVersionKind, wait time.Duration) {
	m.waits.WithLabelValues(watch.String()).Observe(wait.Seconds())
}

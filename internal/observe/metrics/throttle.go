package metrics

import "k8s.io/apimachinery/pkg/runtime/schema"

// TriggerThrottled implements controller.Meter.
func (m *Metrics) TriggerThrottled(watch schema.GroupVersionKind, backoff bool) {
	by := byBucket
	if backoff {
		by = byBackoff
	}
	m.throttled.WithLabelValues(watch.String(), by).Inc()
}

// SetSlowed implements controller.Meter.
func (m *Metrics) SetSlowed(watch schema.GroupVersionKind, number int) {
	m.slowed.WithLabelValues(watch.String()).Set(float64(number))
}

// SetUnselected sets how many resources of a kind no shard selects.
func (m *Metrics) SetUnselected(watch schema.GroupVersionKind, number int) {
	m.unselected.WithLabelValues(watch.String()).Set(float64(number))
}

package metrics

// TriggerHeld implements controller.Meter.
func (m *Metrics) TriggerHeld(gvk string, backoff bool) {
	by := byBucket
	if backoff {
		by = byBackoff
	}
	m.heldBack.WithLabelValues(gvk, by).Inc()
}

// SetSlowed implements controller.Meter.
func (m *Metrics) SetSlowed(gvk string, number int) {
	m.slowed.WithLabelValues(gvk).Set(float64(number))
}

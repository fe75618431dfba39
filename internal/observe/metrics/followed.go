package metrics

import "github.com/prometheus/client_golang/prometheus"

// SetFollowed sets the state of a kind that is watched for a purpose; "" removes the kind. There is
// one series for each kind and namespace, with its state as a label.
func (m *Metrics) SetFollowed(purpose, kind, namespace, state string) {
	labels := prometheus.Labels{"purpose": purpose, "resource": kind, "namespace": namespace}
	m.followed.DeletePartialMatch(labels)
	if state != "" {
		labels[labelState] = state
		m.followed.With(labels).Set(1)
	}
}

// CountUnknownWrite counts a write of a run whose result is not known.
func (m *Metrics) CountUnknownWrite(cause string) {
	m.unknown.WithLabelValues(cause).Inc()
}

package metrics

import "github.com/prometheus/client_golang/prometheus"

// Followed notes what became of following a kind for a purpose: "" for a kind that
// is followed no longer. There is one series for each kind and namespace, with its
// state as a label.
func (m *Metrics) Followed(purpose, kind, namespace, state string) {
	which := prometheus.Labels{"purpose": purpose, "resource": kind, "namespace": namespace}
	m.followed.DeletePartialMatch(which)
	if state != "" {
		which["state"] = state
		m.followed.With(which).Set(1)
	}
}

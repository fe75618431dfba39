package metrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Warm counts what is forked from servers that have imported Ansible.
type Warm struct {
	runs    *prometheus.CounterVec
	refused *prometheus.CounterVec
}

// NewWarm registers the counters.
func NewWarm(registry prometheus.Registerer) (*Warm, error) {
	w := &Warm{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ansible_operator_launched_runs_total", Help: "Runs by how they were launched, where --warm is set: warm, from a server, or cold. Those of watches that ask for cold runs are left out.",
		}, []string{"mode"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ansible_operator_warm_fallbacks_total", Help: "Programs that were started cold although runs may be warm, by program and reason.",
		}, []string{"program", "reason"}),
	}
	return w, errors.Join(registry.Register(w.runs), registry.Register(w.refused))
}

// Launched counts a run.
func (w *Warm) Launched(warm bool) {
	mode := "cold"
	if warm {
		mode = "warm"
	}
	w.runs.WithLabelValues(mode).Inc()
}

// Refused counts a program that was started cold.
func (w *Warm) Refused(program, reason string) { w.refused.WithLabelValues(program, reason).Inc() }

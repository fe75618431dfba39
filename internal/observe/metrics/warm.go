package metrics

import "github.com/prometheus/client_golang/prometheus"

// Warm counts the runs that were cold although they may be warm, and the modules of warm runs.
type Warm struct {
	fallbacks, modules *prometheus.CounterVec
	off                *prometheus.GaugeVec
}

// NewWarm returns Warm, which counts from now on.
func NewWarm() *Warm {
	return &Warm{
		fallbacks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ansible_operator_warm_fallbacks_total", Help: "Runs that were cold although they may be warm, by reason.",
		}, []string{"reason"}),
		modules: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ensign_operator_module_runs_total", Help: "Modules of warm runs, by mode (warm or cold) and the reason of cold ones.",
		}, []string{"mode", "reason"}),
		off: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ensign_operator_warm_mechanism_off", Help: "1 for a mechanism of warm runs that is off because something that it needs is not installed.",
		}, []string{"mechanism"}),
	}
}

// Register shows the counters in registry.
func (w *Warm) Register(registry prometheus.Registerer) error {
	return register(registry, w.fallbacks, w.modules, w.off)
}

// Off says that a mechanism is off.
func (w *Warm) Off(mechanism string) { w.off.WithLabelValues(mechanism).Set(1) }

// Fallback counts a cold run. The reason becomes a label, so there must be few different ones.
func (w *Warm) Fallback(reason string) { w.fallbacks.WithLabelValues(reason).Inc() }

// Module counts a module of a warm run, which was cold for the reason unless that is "".
func (w *Warm) Module(reason string) {
	mode := "warm"
	if reason != "" {
		mode = "cold"
	}
	w.modules.WithLabelValues(mode, reason).Inc()
}

package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Fallbacks counts programs that were started cold although runs may be warm.
type Fallbacks struct{ total *prometheus.CounterVec }

// NewFallbacks returns Fallbacks whose counter is registered with registry.
func NewFallbacks(registry prometheus.Registerer) (*Fallbacks, error) {
	f := &Fallbacks{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ansible_operator_warm_fallbacks_total", Help: "Programs that were started cold although runs may be warm, by program and reason.",
	}, []string{"program", "reason"})}
	if err := registry.Register(f.total); err != nil {
		return nil, fmt.Errorf("register a metric: %w", err)
	}
	return f, nil
}

// Count counts one program. The reason becomes a label, so there must be few different ones.
func (f *Fallbacks) Count(program, reason string) { f.total.WithLabelValues(program, reason).Inc() }

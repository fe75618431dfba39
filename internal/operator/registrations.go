package operator

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ensign-operator/ensign/pkg/options"
)

// registrations is a Registerer that unregisters all that was registered through it, so that a
// process can have one manager after another.
type registrations struct {
	prometheus.Registerer

	mu  sync.Mutex
	all []prometheus.Collector
}

// Register implements prometheus.Registerer.
func (r *registrations) Register(c prometheus.Collector) error {
	if err := r.Registerer.Register(c); err != nil {
		return explainRegistered(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, c)
	return nil
}

// explainRegistered names the setting by which two managers of a process have metrics.
func explainRegistered(err error) error {
	if _, twice := errors.AsType[prometheus.AlreadyRegisteredError](err); !twice {
		return err
	}
	return &options.Error{Field: "Registerer", Err: errors.New("another manager of this process has its metrics there: give each manager one of its own")}
}

// unregister takes all back.
func (r *registrations) unregister() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.all {
		r.Unregister(c)
	}
	r.all = nil
}

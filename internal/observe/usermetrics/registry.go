package usermetrics

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// maxMetrics bounds the metrics of all roles. With at most 14 series each, they need less than
	// 10 MiB.
	maxMetrics = 1000
	// maxNameLength is in characters.
	maxNameLength, maxDescriptionBytes = 200, 4096
)

// Registry has the metrics that roles have posted. They stay until the manager ends.
type Registry struct {
	registerer prometheus.Registerer
	validName  *regexp.Regexp

	mu      sync.Mutex
	metrics map[string]roleMetric
	// series has the metric of each series name. With two series of the same name, the manager's
	// metrics endpoint would fail as a whole.
	series map[string]string
}

// roleMetric is a metric that a role has posted.
type roleMetric struct {
	kind      string
	collector prometheus.Collector
}

// NewRegistry returns a Registry that registers its metrics with registerer.
func NewRegistry(registerer prometheus.Registerer) *Registry {
	return &Registry{
		registerer: registerer, metrics: map[string]roleMetric{}, series: map[string]string{},
		// Prometheus accepts any UTF-8 name since version 3, but many clients do not.
		validName: regexp.MustCompile(fmt.Sprintf(`^[a-zA-Z_:][a-zA-Z0-9_:]{0,%d}$`, maxNameLength-1)),
	}
}

// isReserved reports whether a metric of the manager has such a name, or may have it in a later
// version.
func isReserved(name string) bool {
	return slices.ContainsFunc([]string{
		"ansible_operator_", "controller_runtime_", "workqueue_", "rest_client_", "leader_election_", "certwatcher_",
		"ensign_operator_", "go_", "process_", "promhttp_", "resource_created_at_seconds", "__",
	}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// apply makes the post's change. The first post of a metric creates it. An error says what is
// wrong with the post, and nothing has changed then.
func (r *Registry) apply(p post) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	metric, ok := r.metrics[p.name]
	if !ok {
		collector, err := r.add(p)
		if err != nil {
			return err
		}
		metric = roleMetric{p.change.kind(), collector}
		r.metrics[p.name] = metric
	}
	if metric.kind != p.change.kind() {
		return fmt.Errorf("%q is a %s and can't become a %s: choose another name", p.name, metric.kind, p.change.kind())
	}
	p.change.apply(metric.collector)
	return nil
}

// add creates a metric and registers it.
func (r *Registry) add(p post) (prometheus.Collector, error) {
	if err := r.check(p); err != nil {
		return nil, err
	}
	collector := p.change.collector(p.name, p.description)
	if err := r.registerer.Register(collector); err != nil {
		return nil, fmt.Errorf("%q can't be shown: %w", p.name, err)
	}
	for _, name := range p.change.series(p.name) {
		r.series[name] = p.name
	}
	return collector, nil
}

// check returns an error if the post must not create a new metric.
func (r *Registry) check(p post) error {
	switch {
	case p.name == "":
		return errors.New("name is missing")
	case !r.validName.MatchString(p.name):
		return fmt.Errorf("name %.*q: allowed are letters, digits, \"_\" and \":\", at most %d, no digit first", maxNameLength, p.name, maxNameLength)
	case len(p.description) > maxDescriptionBytes:
		return fmt.Errorf("the description has %d bytes, and %d are allowed", len(p.description), maxDescriptionBytes)
	case isReserved(p.name):
		return fmt.Errorf("%q is kept for metrics of the manager itself: choose another name", p.name)
	case len(r.metrics) >= maxMetrics:
		return fmt.Errorf("there are %d metrics already, the most that roles may make; what differs from resource to resource does not belong in a metric's name", maxMetrics)
	}
	for _, name := range p.change.series(p.name) {
		if other, taken := r.series[name]; taken {
			return fmt.Errorf("%q would show %q, as %q does: choose another name", p.name, name, other)
		}
	}
	return nil
}

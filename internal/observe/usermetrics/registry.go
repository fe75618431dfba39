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
	// maxMetrics, each of at most 14 series, need less than 10 MiB together.
	maxMetrics = 1000
	// maxName is in characters, maxDescription in bytes.
	maxName, maxDescription = 200, 4096
)

// Registry holds the metrics that roles have posted. They stay until the manager ends.
type Registry struct {
	shown prometheus.Registerer
	valid *regexp.Regexp

	mu    sync.Mutex
	known map[string]known
	// series says of each name that is shown which metric shows it. A name that stands
	// twice would make the whole of the manager's metrics unreadable.
	series map[string]string
}

type known struct {
	kind   string
	metric prometheus.Collector
}

// NewRegistry returns a Registry that shows its metrics in another.
func NewRegistry(shown prometheus.Registerer) *Registry {
	return &Registry{
		shown: shown, known: map[string]known{}, series: map[string]string{},
		// Prometheus itself takes any text by now, which few who query it do.
		valid: regexp.MustCompile(fmt.Sprintf(`^[a-zA-Z_:][a-zA-Z0-9_:]{0,%d}$`, maxName-1)),
	}
}

// reserved reports whether names like this are the manager's own, or may be in a later
// version of it.
func reserved(name string) bool {
	return slices.ContainsFunc([]string{
		"ansible_operator_", "controller_runtime_", "workqueue_", "rest_client_", "leader_election_", "certwatcher_",
		"go_", "process_", "promhttp_", "resource_created_at_seconds", "__",
	}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// apply makes the post's change, to a metric that is made by its first post. An error
// says what is wrong with the post, and nothing has changed.
func (r *Registry) apply(p post) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	have, ok := r.known[p.name]
	if !ok {
		metric, err := r.add(p)
		if err != nil {
			return err
		}
		have = known{p.change.kind(), metric}
		r.known[p.name] = have
	}
	if have.kind != p.change.kind() {
		return fmt.Errorf("%q is a %s and can't become a %s: choose another name", p.name, have.kind, p.change.kind())
	}
	p.change.apply(have.metric)
	return nil
}

func (r *Registry) add(p post) (prometheus.Collector, error) {
	if err := r.check(p); err != nil {
		return nil, err
	}
	metric := p.change.collector(p.name, p.description)
	if err := r.shown.Register(metric); err != nil {
		return nil, fmt.Errorf("%q can't be shown: %w", p.name, err)
	}
	for _, name := range p.change.series(p.name) {
		r.series[name] = p.name
	}
	return metric, nil
}

// check is an error where a new metric may not be made.
func (r *Registry) check(p post) error {
	switch {
	case p.name == "":
		return errors.New("name is missing")
	case !r.valid.MatchString(p.name):
		return fmt.Errorf("name %.*q: allowed are letters, digits, \"_\" and \":\", at most %d, no digit first", maxName, p.name, maxName)
	case len(p.description) > maxDescription:
		return fmt.Errorf("the description has %d bytes, and %d are allowed", len(p.description), maxDescription)
	case reserved(p.name):
		return fmt.Errorf("%q is kept for metrics of the manager itself: choose another name", p.name)
	case len(r.known) >= maxMetrics:
		return fmt.Errorf("there are %d metrics already, the most that roles may make; what differs from resource to resource does not belong in a metric's name", maxMetrics)
	}
	for _, name := range p.change.series(p.name) {
		if owner, taken := r.series[name]; taken {
			return fmt.Errorf("%q would show %q, as %q does: choose another name", p.name, name, owner)
		}
	}
	return nil
}

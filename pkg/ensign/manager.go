package ensign

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ensign-operator/ensign/internal/observe/metricsauth"
	"github.com/ensign-operator/ensign/internal/operator"
	"github.com/ensign-operator/ensign/pkg/options"
)

// Options are the settings of a manager beside those of controller-runtime. The zero value works.
type Options = options.Options

// Error is an error that one field of Options, or of ctrl.Options, causes.
type Error = options.Error

// How much of runs the log shows: see Options.TaskEvents.
const (
	TaskEventsNothing    = options.TaskEventsNothing
	TaskEventsTasks      = options.TaskEventsTasks
	TaskEventsEverything = options.TaskEventsEverything
)

// Manager is a ctrl.Manager that also runs the content of watches.
//
// Its cache and its client are those of any ctrl.Manager: they have whole objects. The watches have
// a separate cache.
//
// Start stops in an order in which every run keeps the parts that it needs. When its context ends,
// Start begins no more runs, ends all runs, and writes their statuses, while reconcilers, caches,
// webhooks and servers continue. Then these stop, and last the lease is released. All of this
// shares ctrl.Options.GracefulShutdownTimeout, which is 10 s or more here; 30 s by default.
//
// When the lease is lost, Start ends all runs at once, writes nothing, and returns an error.
type Manager struct {
	ctrl.Manager

	inner *operator.Manager
}

// NewManager returns a manager for the API server of cfg. It contacts nothing yet.
//
// All of o counts, with these differences. With o.LeaderElection the lease is fenced: a manager
// that cannot be sure to hold it reaches the API server no more, and its runs end before another
// replica may lead. So LeaderElectionReleaseOnCancel, LeaderElectionResourceLockInterface and a
// Transport in cfg are refused, and LeaseDuration is 3 s or more. The probes at
// HealthProbeBindAddress name the checks that fail. The watched namespaces are those of
// o.Cache.DefaultNamespaces; selectors, ByObject and timeouts of o.Cache hold for the program's own
// reads, not for watches: Selector chooses resources.
//
// An error about a setting has an *Error for each field that is wrong.
func NewManager(cfg *rest.Config, o ctrl.Options, e Options) (*Manager, error) {
	inner, err := operator.New(cfg, o, e)
	if err != nil {
		return nil, err
	}
	return &Manager{Manager: inner, inner: inner}, nil
}

// LoadWatches reads a file such as watches.yaml, at a path relative to Options.Dir, and finds the
// content of its watches. For roles and playbooks it starts Python, which ends with ctx. It returns
// all faults of the file at once. The watches are not added yet.
func (m *Manager) LoadWatches(ctx context.Context, path string) ([]Watch, error) {
	list, err := m.inner.LoadWatches(ctx, path)
	if err != nil {
		return nil, err
	}
	var all []Watch
	for i := range list {
		all = append(all, loaded{list[i]})
	}
	return all, nil
}

// AddWatch makes the manager reconcile a kind by the content of the watch. It returns an error if
// the watch or an option is wrong, if its content is not found, if the kind is watched already, in
// whatever version, or if the manager has started.
func (m *Manager) AddWatch(w Watch, opts ...WatchOption) error {
	added, err := w.resolve(m.inner)
	if err != nil {
		return err
	}
	var errs []error
	for _, opt := range opts {
		if opt == nil {
			errs = append(errs, errors.New("an option is nil"))
			continue
		}
		errs = append(errs, opt(&added))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("watch %s: %w", w.WatchedKind(), err)
	}
	return m.inner.AddWatch(added)
}

// MetricsFilter is a FilterProvider of ctrl.Options.Metrics. Only clients that may get the path of
// the endpoint, as a non-resource URL, read metrics there. It works like controller-runtime's
// filters.WithAuthenticationAndAuthorization, without the API server's library, which that links.
func MetricsFilter(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	return metricsauth.Filter(config, client)
}

package operator

import (
	"crypto/tls"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/watches"
)

func newManager(client *rest.Config, l lease, list []watches.Watch, o config.Options, log logr.Logger) (manager.Manager, error) {
	options := ctrl.Options{
		Logger:                 log,
		Cache:                  cacheOptions(o.Env.Namespaces(), list),
		Metrics:                metricsOptions(o),
		HealthProbeBindAddress: "0", // See probes.
		PprofBindAddress:       o.PprofBindAddress,
		LeaderElection:         o.LeaderElect,
		LeaderElectionID:       l.name,
		LeaseDuration:          &o.LeaderElectLeaseDuration,
		RenewDeadline:          &o.LeaderElectRenewDeadline,
		RetryPeriod:            &l.retry,
		// client-go would release the lease after a failed renewal too, and only then
		// tell that it is lost: a successor could start beside live runs. So the
		// operator releases it, at the end of an orderly stop (stop.go).
		LeaderElectionReleaseOnCancel: false,
		GracefulShutdownTimeout:       &o.GracefulShutdownTimeout,
	}
	if l.lock != nil {
		options.LeaderElectionResourceLockInterface = l.lock
	}
	m, err := ctrl.NewManager(l.behind(client), options)
	if err == nil && l.lock != nil {
		l.lock.recorder = m
	}
	return m, err
}

// cacheOptions reduces the watched kinds, the only ones in this cache, to what
// triggers need, and keeps to the namespaces of WATCH_NAMESPACE. The transform is
// the default one: named by kind it would need every kind to be served already.
func cacheOptions(namespaces []string, list []watches.Watch) cache.Options {
	options := cache.Options{DefaultTransform: controller.Reducer(list...)}
	for _, namespace := range namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}

func metricsOptions(o config.Options) metricsserver.Options {
	options := metricsserver.Options{BindAddress: o.MetricsBindAddress, SecureServing: o.MetricsSecure}
	if o.MetricsRequireRBAC {
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	if !o.EnableHTTP2 {
		// HTTP/2 has let single clients exhaust servers (CVE-2023-44487); a scraper does not need it.
		options.TLSOpts = append(options.TLSOpts, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })
	}
	return options
}

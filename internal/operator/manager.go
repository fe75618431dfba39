package operator

import (
	"crypto/tls"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/observe/metricsauth"
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
		RetryPeriod:            &l.retryPeriod,
		// client-go would also release the lease after a failed renewal, and report the
		// loss only afterwards: a successor could start beside live runs. So stopper
		// releases the lease at the end of an orderly stop.
		LeaderElectionReleaseOnCancel: false,
		GracefulShutdownTimeout:       &o.GracefulShutdownTimeout,
	}
	if l.lock != nil {
		options.LeaderElectionResourceLockInterface = l.lock
	}
	m, err := ctrl.NewManager(l.fencedConfig(client), options)
	if err == nil && l.lock != nil {
		l.lock.recorder = m
	}
	return m, err
}

// cacheOptions limits the cache to the namespaces, and its objects to the fields that
// triggers need. The cache holds only watched kinds. The transform is the default one,
// because a transform for a kind needs that kind to be served at the start.
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
		options.FilterProvider = metricsauth.Filter
	}
	if !o.EnableHTTP2 {
		// With HTTP/2, a single client can exhaust the server (CVE-2023-44487). Scrapers do not need it.
		options.TLSOpts = append(options.TLSOpts, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })
	}
	return options
}

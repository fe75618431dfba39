package managercmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ensign-operator/ensign/internal/cli"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/leadership"
	"github.com/ensign-operator/ensign/internal/operator"
	"github.com/ensign-operator/ensign/pkg/ensign"
)

func newRunCommand(build cli.Build) *cobra.Command {
	flags := cli.NewFlags()
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Watch the kinds of watches.yaml and run their content",
		Long: `run watches the kinds named in watches.yaml, turns the spec of each custom
resource into variables or values, and runs the role or playbook of its watch through
ansible-runner, or installs, upgrades or repairs its chart's release. It writes
the result into the resource's status.

After SIGTERM or Ctrl-C it ends with exit code 0, when all runs have ended and
their statuses are written. It ends with 1 when something is wrong at the start
(it has changed nothing then) or when its leader lease is lost.`,
		Example: `  # In a directory with watches.yaml, roles/ and playbooks/, against the cluster of KUBECONFIG:
  manager run

  # Every task's output, one JSON object a line, without metrics:
  manager run --ansible-log-events=Everything --log-format=json --metrics-bind-address=0`,
		Args:          cli.OrUnable(cobra.NoArgs),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := flags.Complete(cmd.ErrOrStderr())
			o.Version, o.Commit, o.Env = build.Version, build.Commit, config.NewEnvironment(os.Environ())
			o.Options, _ = o.WithDefaults() // Its errors come again, from NewManager.
			if err := errors.Join(err, o.Check(), checkElection(o)); err != nil {
				return err
			}
			return runManager(cmd.Context(), o)
		},
	}
	flags.Register(cmd)
	return cmd
}

// checkElection checks the options of leader election. The name of the lease may come from a
// variable, which an error then names.
func checkElection(o config.Options) error {
	err := cli.WithFlagNames(leadership.CheckElection(controllerOptions(o)))
	if err == nil || o.LeaderElectionID != "" {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), "--leader-election-id=", "OPERATOR_NAME="))
}

// runManager works like any Go program with such a manager, with flags in front.
func runManager(ctx context.Context, o config.Options) error {
	o = o.WithEnvironment()
	settings := controllerOptions(o)
	settings.Logger = cli.SetLibraryLog(o.Logger)
	restConfig, missing := cli.RESTConfig(o)
	if missing != nil {
		restConfig = &rest.Config{} // Faults of the watches come first, and nothing is contacted.
	}
	mgr, err := ensign.NewManager(restConfig, settings, o.Options)
	if err != nil {
		return err
	}
	list, err := mgr.LoadWatches(ctx, o.WatchesFile)
	if ctx.Err() != nil {
		o.Logger.Info("stopped during the start")
		return nil //nolint:nilerr // It was asked to stop.
	}
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return fmt.Errorf("%s: %w", o.WatchesFile, operator.ErrEmptyList)
	}
	if missing != nil {
		return missing
	}
	for _, w := range list {
		if err := mgr.AddWatch(w); err != nil {
			return err
		}
	}
	return mgr.Start(ctx)
}

// controllerOptions returns controller-runtime's options that the flags and WATCH_NAMESPACE set.
func controllerOptions(o config.Options) ctrl.Options {
	settings := ctrl.Options{
		Metrics:                 metricsOptions(o),
		HealthProbeBindAddress:  o.HealthProbeBindAddress,
		PprofBindAddress:        o.PprofBindAddress,
		LeaderElection:          o.LeaderElect,
		LeaderElectionID:        o.LeaseName(),
		LeaderElectionNamespace: o.LeaderElectionNamespace,
		LeaseDuration:           &o.LeaderElectLeaseDuration,
		RenewDeadline:           &o.LeaderElectRenewDeadline,
		GracefulShutdownTimeout: &o.GracefulShutdownTimeout,
	}
	for _, namespace := range o.Env.Namespaces() {
		if settings.Cache.DefaultNamespaces == nil {
			settings.Cache.DefaultNamespaces = map[string]cache.Config{}
		}
		settings.Cache.DefaultNamespaces[namespace] = cache.Config{}
	}
	return settings
}

func metricsOptions(o config.Options) metricsserver.Options {
	options := metricsserver.Options{BindAddress: o.MetricsBindAddress, SecureServing: o.MetricsSecure}
	if o.MetricsRequireRBAC {
		options.FilterProvider = ensign.MetricsFilter
	}
	if !o.EnableHTTP2 {
		// With HTTP/2, a single client can exhaust the server (CVE-2023-44487). Scrapers do not need it.
		options.TLSOpts = append(options.TLSOpts, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })
	}
	return options
}

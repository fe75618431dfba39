// Package trivial is an operator whose content is a function of Go that does nothing: a program is
// its manager if it was started as that. Such a manager needs for a custom resource what any
// manager needs, whatever the content.
package trivial

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/pkg/ensign"
	"github.com/ensign-operator/ensign/test/harness"
)

// variable makes a program the manager.
const variable = "ENSIGN_TEST_TRIVIAL"

// As makes a manager of the options that of the program which calls this, which must call Main first
// of all.
func As(o harness.Options) (harness.Options, error) {
	self, err := os.Executable()
	o.Binary, o.Env = self, append(o.Env, variable+"=yes")
	return o, err
}

// Main is the manager of a kind, and ends the process, if it was started as that. It knows some of the
// flags of the program manager.
func Main(kind ensign.Kind) {
	if os.Getenv(variable) == "" {
		return
	}
	if err := serve(kind, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "trivial manager:", err)
		syscall.Exit(1) // os.Exit would take a second where there is the race detector.
	}
	syscall.Exit(0)
}

func serve(kind ensign.Kind, args []string) error {
	o := ctrl.Options{
		Logger: zap.New(zap.UseDevMode(true)), HealthProbeBindAddress: "0", LeaseDuration: new(time.Duration), RenewDeadline: new(time.Duration),
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{os.Getenv("WATCH_NAMESPACE"): {}}}, LeaderElectionNamespace: os.Getenv("WATCH_NAMESPACE"),
		Metrics: metricsserver.Options{},
	}
	e, kubeconfig := ensign.Options{}, ""
	flags := pflag.NewFlagSet("trivial", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.StringVar(&kubeconfig, "kubeconfig", "", "")
	flags.StringVar(&e.RunDir, "run-dir", "", "")
	flags.StringVar(&o.Metrics.BindAddress, "metrics-bind-address", "0", "")
	flags.IntVar(&e.MaxConcurrentRuns, "max-concurrent-runs", 0, "")
	flags.IntVar(&e.MaxConcurrentReconciles, "max-concurrent-reconciles", 0, "")
	flags.StringVar(&e.WatchLabelSelector, "watch-label-selector", "", "")
	flags.BoolVar(&o.LeaderElection, "leader-elect", false, "")
	flags.StringVar(&o.LeaderElectionID, "leader-election-id", "", "")
	flags.DurationVar(o.LeaseDuration, "leader-elect-lease-duration", 15*time.Second, "")
	flags.DurationVar(o.RenewDeadline, "leader-elect-renew-deadline", 10*time.Second, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	m, err := ensign.NewManager(config, o, e)
	if err != nil {
		return err
	}
	if err := m.AddWatch(ensign.Custom{Kind: kind, Engine: engine{}}); err != nil {
		return err
	}
	return m.Start(ctx)
}

type engine struct{ content.EngineDefaults }

// Digest implements content.Engine: what happens depends on the resource alone.
func (engine) Digest() string { return "1" }

// Prepare implements content.Engine.
func (engine) Prepare(context.Context, content.Request) (content.Work, *content.Outcome) {
	return work{}, nil
}

type work struct{ content.WorkDefaults }

// Run implements content.Work.
func (work) Run(ctx context.Context, _ content.Job) content.Result { return content.ResultOf(ctx, nil) }

// Command manager runs the operator: roles, playbooks and charts of watches.yaml, and the
// reconcilers of this module, in one manager.
package main

import (
	"cmp"
	"flag"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/ensign-operator/ensign/pkg/ensign"

	examplecomv1 "github.com/ensign-operator/ensign/examples/visitors/go/api/v1"
	"github.com/ensign-operator/ensign/examples/visitors/go/internal/controller"
	// +kubebuilder:scaffold:imports
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(examplecomv1.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

func main() {
	var watchesFile, metricsAddress, probeAddress, certificates, namespace string
	var leaderElect bool
	var webhookPort int
	var settings ensign.Options
	flag.StringVar(&watchesFile, "watches-file", "watches.yaml", "which content reconciles which kind")
	flag.StringVar(&metricsAddress, "metrics-bind-address", ":8443", "where metrics are served by HTTPS; 0 is nowhere")
	flag.StringVar(&probeAddress, "health-probe-bind-address", ":6789", "where probes are answered; 0 is nowhere")
	flag.BoolVar(&leaderElect, "leader-elect", false, "one of several replicas works, the others stand by")
	flag.StringVar(&namespace, "leader-election-namespace", "", "namespace of the lease, of the key of releases and of the Jobs of runs; default that of the pod")
	flag.StringVar(&settings.RunDir, "run-dir", "", "directory for runs, of this manager alone; default one below the directory of temporary files")
	flag.StringVar(&settings.JobAddress, "job-address", "", "host:port where the pods of Jobs find the manager")
	flag.StringVar(&certificates, "webhook-cert-path", "", "directory with tls.crt and tls.key, for webhooks")
	flag.IntVar(&webhookPort, "webhook-port", webhook.DefaultPort, "where webhooks are served, if there are any")
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	ctx := ctrl.SetupSignalHandler()

	// The manager starts this program again in the pods of Jobs, for watches with executor: job.
	if flag.NArg() == 1 && flag.Arg(0) == ensign.AgentCommand {
		if err := ensign.RunAgent(ctx, ctrl.Log); err != nil {
			setupLog.Error(err, "execute a run in a Job")
			os.Exit(1)
		}
		return
	}

	mgr, err := ensign.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme: scheme,
		Metrics: metricsserver.Options{
			BindAddress: metricsAddress, SecureServing: true, FilterProvider: ensign.MetricsFilter,
		},
		WebhookServer:           webhook.NewServer(webhook.Options{CertDir: certificates, Port: webhookPort}),
		HealthProbeBindAddress:  probeAddress,
		LeaderElection:          leaderElect,
		LeaderElectionID:        "visitors-go.example.com",
		LeaderElectionNamespace: namespace,
	}, settings)
	if err != nil {
		setupLog.Error(err, "make the manager")
		os.Exit(1)
	}
	watches, err := mgr.LoadWatches(ctx, watchesFile)
	if err != nil {
		setupLog.Error(err, "load the watches")
		os.Exit(1)
	}
	for _, watch := range watches {
		if err := mgr.AddWatch(watch); err != nil {
			setupLog.Error(err, "add a watch")
			os.Exit(1)
		}
	}

	if err := (&controller.VisitorsAppReconciler{
		Client: mgr.GetClient(),
		Direct: mgr.GetAPIReader(),
		Scheme: mgr.GetScheme(),
		Images: controller.Images{
			Visitors: cmp.Or(os.Getenv("RELATED_IMAGE_VISITORS"), "visitors:1.0"),
			MySQL:    cmp.Or(os.Getenv("RELATED_IMAGE_MYSQL"), "mysql:8.4"),
		},
	}).SetupWithManager(mgr); err != nil {
		setupLog.Error(err, "add the controller of VisitorsApp")
		os.Exit(1)
	}
	// +kubebuilder:scaffold:builder

	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		setupLog.Error(err, "add the liveness probe")
		os.Exit(1)
	}
	if err := mgr.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		setupLog.Error(err, "add the readiness probe")
		os.Exit(1)
	}
	if err := mgr.Start(ctx); err != nil {
		setupLog.Error(err, "run the manager")
		os.Exit(1)
	}
}

package config

import (
	"io"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/observe/eventlog"
	"github.com/ensign-operator/ensign/internal/observe/metrics"
)

// Options are the settings of a manager. The command line's flags fill them in;
// docs/reference-command-line.md says what each means.
type Options struct {
	Build metrics.Build

	// Dir is the working directory; relative paths of watches start from it.
	Dir         string
	WatchesFile string
	Env         Environment
	// Executable is the manager's own path; a Python environment may stand beside it.
	Executable string
	Kubeconfig string

	AnsibleVerbosity       int
	MaxVerbosity           int
	AnsibleRolesPath       string // joined by ":"
	AnsibleCollectionsPath string // joined by ":"
	AnsibleArgs            string
	RunDir                 string
	ArtifactsMaxBytes      int64         // 0: no limit
	RunIdleTimeout         time.Duration // 0: none
	// Warm lets runs be forked from servers that have imported Ansible, in at most
	// WarmServers environments.
	Warm                    bool
	WarmServers             int
	DropEnv                 []string
	ReconcilePeriod         time.Duration
	MaxConcurrentReconciles int
	MaxConcurrentRuns       int // 0: from the processors, the memory and the watches
	MaxBackoff              time.Duration

	InjectOwnerRef bool
	// ChildrenUnused is how long a kind of which there is no child is watched; 0 for
	// the usual time.
	ChildrenUnused time.Duration
	ProxyPort      int
	ProxyOpenPort  int // 0: none
	// ConfineToNamespace is for all watches; each may ask for it alone.
	ConfineToNamespace bool

	MetricsBindAddress     string
	MetricsSecure          bool
	MetricsRequireRBAC     bool
	EnableHTTP2            bool
	HealthProbeBindAddress string
	PprofBindAddress       string // at a loopback address; "0": nowhere
	// UserMetricsBindAddress is where roles post metrics; "0": nowhere.
	UserMetricsBindAddress string
	// UserMetricsOpen takes them without the token of a live run too.
	UserMetricsOpen bool

	LeaderElect              bool
	LeaderElectionID         string
	LeaderElectionNamespace  string
	LeaderElectLeaseDuration time.Duration
	LeaderElectRenewDeadline time.Duration
	GracefulShutdownTimeout  time.Duration

	Logger logr.Logger
	// Blocks gets the output of tasks in console form. Its writes must not mix
	// with those of the logger.
	Blocks    io.Writer
	JSONLogs  bool
	LogEvents eventlog.Level
}

// Resolved returns the options as their environment, which Check has seen, changes them.
func (o Options) Resolved() Options {
	if debug, _ := o.Env.debugLogs(); debug {
		o.LogEvents = eventlog.Everything
	}
	if o.LeaderElect && o.LeaderElectionID == "" {
		o.Logger.Info("WARNING: OPERATOR_NAME is read as the name of the lease, but deprecated: give --leader-election-id", "name", o.Env["OPERATOR_NAME"])
	}
	return o
}

package config

import (
	"io"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/observe/eventlog"
	"github.com/ensign-operator/ensign/internal/observe/metrics"
)

// Options are the settings of a manager. Package cli sets them from the flags, which
// docs/reference-command-line.md describes.
type Options struct {
	Build metrics.Build

	// Dir is the working directory. Relative paths of watches start there.
	Dir         string
	WatchesFile string
	Env         Environment
	// Project is set where a project is checked or tried outside of its image: paths of the image
	// mean the project's own then, as InProject says.
	Project bool
	// Executable is the path of the manager's program. A Python environment may be beside it.
	Executable string
	Kubeconfig string

	// SuppressOverrideValues keeps the values of overrideValues out of Events.
	SuppressOverrideValues bool
	AnsibleVerbosity       int
	MaxVerbosity           int
	AnsibleRolesPath       string // joined by ":"
	AnsibleCollectionsPath string // joined by ":"
	AnsibleArgs            string
	RunDir                 string
	ArtifactsMaxBytes      int64         // 0: no limit
	RunIdleTimeout         time.Duration // 0: no limit
	// Warm allows warm runs.
	Warm                    bool
	DropEnv                 []string
	ReconcilePeriod         time.Duration
	MaxConcurrentReconciles int
	MaxConcurrentRuns       int // 0: DefaultMaxConcurrentRuns
	MaxBackoff              time.Duration

	InjectOwnerRef bool
	// ChildrenUnused is how long the manager watches a kind without children; 0 is the
	// default of package children.
	ChildrenUnused time.Duration
	ProxyPort      int // 0: any free port
	ProxyOpenPort  int // 0: none
	// ConfineToNamespace confines the runs of all watches. A watch can also set it for its own.
	ConfineToNamespace bool

	MetricsBindAddress     string
	MetricsSecure          bool
	MetricsRequireRBAC     bool
	EnableHTTP2            bool
	HealthProbeBindAddress string
	PprofBindAddress       string // a loopback address; "0": off
	// UserMetricsBindAddress is the address to which roles post metrics; "0": off.
	UserMetricsBindAddress string
	// UserMetricsOpen accepts these metrics also without the token of a live run.
	UserMetricsOpen bool

	LeaderElect              bool
	LeaderElectionID         string
	LeaderElectionNamespace  string
	LeaderElectLeaseDuration time.Duration
	LeaderElectRenewDeadline time.Duration
	GracefulShutdownTimeout  time.Duration

	Logger logr.Logger
	// Blocks receives the output of tasks in the console format. It must be the locked
	// stream of Logger, so that lines of the two never mix.
	Blocks   io.Writer
	JSONLogs bool
	// Screen, if set, shows runs to people instead. It writes to the same stream.
	Screen    *eventlog.Screen
	LogEvents eventlog.Level
}

// WithEnvironment returns the options with LogEvents set from ANSIBLE_DEBUG_LOGS, and
// warns if the lease's name comes from the environment. Check has passed.
func (o Options) WithEnvironment() Options {
	if debug, _ := o.Env.debugLogs(); debug {
		o.LogEvents = eventlog.Everything
	}
	if o.LeaderElect && o.LeaderElectionID == "" {
		o.Logger.Info("WARNING: OPERATOR_NAME is read as the name of the lease, but deprecated: give --leader-election-id", "name", o.Env["OPERATOR_NAME"])
	}
	return o
}

package config

import (
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/pkg/options"
)

// Options are the settings of a manager, and those that only its commands have. Package cli sets
// them from the flags, which docs/reference-command-line.md describes.
type Options struct {
	options.Options

	// Env has the variables of Environ.
	Env         Environment
	WatchesFile string
	// Project is set where a project is checked or tried outside of its image: paths of the image
	// mean the project's own then, as InProject says.
	Project    bool
	Kubeconfig string

	MetricsBindAddress     string
	MetricsSecure          bool
	MetricsRequireRBAC     bool
	EnableHTTP2            bool
	HealthProbeBindAddress string
	PprofBindAddress       string // a loopback address; "0": off

	LeaderElect              bool
	LeaderElectionID         string
	LeaderElectionNamespace  string
	LeaderElectLeaseDuration time.Duration
	LeaderElectRenewDeadline time.Duration
	GracefulShutdownTimeout  time.Duration

	Logger logr.Logger
}

// Of converts the settings of a manager to the type of this package.
func Of(o options.Options, log logr.Logger) Options {
	return Options{Options: o, Env: NewEnvironment(o.Environ), Logger: log}
}

// WithEnvironment returns the options with TaskEvents set from ANSIBLE_DEBUG_LOGS, and
// warns if the lease's name comes from the environment. Check has passed.
func (o Options) WithEnvironment() Options {
	if debug, _ := o.Env.debugLogs(); debug {
		o.TaskEvents = options.TaskEventsEverything
	}
	if o.LeaderElect && o.LeaderElectionID == "" {
		o.Logger.Info("WARNING: OPERATOR_NAME is read as the name of the lease, but deprecated: give --leader-election-id", "name", o.Env["OPERATOR_NAME"])
	}
	return o
}

// Package options has the settings of a manager as a Go program gives them. Programs use them by
// their names in package ensign: ensign.Options.
//
// It is a leaf, so that packages below package ensign can name a setting too.
package options

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
)

// The settings that are not given.
const (
	DefaultReconcilePeriod   = 10 * time.Hour
	DefaultMaxBackoff        = 5 * time.Minute
	DefaultArtifactsMaxBytes = 1 << 30
)

// How much of runs the log shows.
const (
	// TaskEventsNothing shows the start and the end of runs alone.
	TaskEventsNothing = "Nothing"
	// TaskEventsTasks shows a line for each task, and the output of failed ones.
	TaskEventsTasks = "Tasks"
	// TaskEventsEverything shows the output of all tasks.
	TaskEventsEverything = "Everything"
)

// Options are the settings of a manager beside those of controller-runtime. The zero value works:
// it runs content as the program "manager" does without flags, except that the endpoint where roles
// post metrics is off, and Ansible's verbosity is 0.
type Options struct {
	// Version and Commit are those of the program, for metrics and logs, and for the User-Agent of
	// a rest.Config that has none.
	Version, Commit string

	// Dir is the operator's directory, in which relative paths start; default: the working
	// directory.
	Dir string
	// Environ has environment variables as "NAME=value"; nil: those of the process. Runs get them,
	// without those that DropEnv names. They choose the Python environment (PATH, VIRTUAL_ENV),
	// replace ${NAME} in watches.yaml, and have the effects in docs/reference-environment.md, except
	// WATCH_NAMESPACE (ctrl.Options.Cache.DefaultNamespaces), OPERATOR_NAME
	// (ctrl.Options.LeaderElectionID) and ANSIBLE_DEBUG_LOGS (TaskEvents).
	Environ []string
	// DropEnv has names of environment variables that runs do not get.
	DropEnv []string
	// Executable is the path of the program; default: os.Executable. The program chart-exec, which
	// charts need, is beside it, and a Python environment may be.
	Executable string

	// AnsibleRolesPath and AnsibleCollectionsPath are directories, joined by ":", where roles and
	// collections are searched; default: those of the environment, or Ansible's.
	AnsibleRolesPath, AnsibleCollectionsPath string
	// AnsibleArgs are further arguments of ansible-playbook, quoted as for a shell.
	AnsibleArgs string
	// AnsibleVerbosity is a number of -v, 0 to 7. A watch and an annotation of a CR override it.
	AnsibleVerbosity int
	// MaxVerbosity is the most to which the annotation of a CR can set it, 0 to 7.
	MaxVerbosity int
	// SuppressOverrideValues keeps the values of overrideValues out of Events.
	SuppressOverrideValues bool

	// RunDir is a directory, private to this manager, for inputs and artifacts of runs. It is empty
	// or absent at first. Default: DefaultRunDir, which one manager of a user can have at a time.
	RunDir string
	// ArtifactsMaxBytes limits the artifacts there, and those of one CR to a sixteenth: 1 MiB or
	// more. 0 is 1 GiB, less than 0 no limit.
	ArtifactsMaxBytes int64
	// RunIdleTimeout is the longest time without a job event or output before a run is ended as
	// hung; 0 means no limit.
	RunIdleTimeout time.Duration
	// Cold starts each run of Ansible in a new interpreter.
	Cold bool

	// ReconcilePeriod is the pause after which content runs again although nothing triggers it;
	// 0 is ten hours, less than 0 never. A watch and an annotation of a CR override it.
	ReconcilePeriod time.Duration
	// MaxBackoff is the longest pause after consecutive failures, 1 s or more; 0 is 5 minutes.
	MaxBackoff time.Duration
	// MaxConcurrentReconciles limits the runs of one watch at the same time, 1 to 65536; 0 is the
	// number of processors. A watch overrides it.
	MaxConcurrentReconciles int
	// MaxConcurrentRuns limits the runs of all watches at the same time, 1 to 65536; 0 is two for
	// each processor or watch, as far as there is memory.
	MaxConcurrentRuns int
	// MaxConcurrentJobs limits the running runs in Jobs of all watches together, 1 to 65536; 0 is 50.
	MaxConcurrentJobs int
	// JobBindAddress is where the manager serves the agents of runs in Jobs; "" is ":8445".
	JobBindAddress string
	// JobAddress is "host:port" where agents find all replicas of the manager; "": a Service in its
	// namespace with the name of the lease and "-jobs".
	JobAddress string

	// WatchLabelSelector limits all watches to the CRs with these labels, such as "shard=a" or
	// "!shard"; "": all CRs. It needs leader election, with a lease for each selector.
	WatchLabelSelector string
	// NoOwnerReferences leaves the objects that runs create without an owner reference to the CR.
	NoOwnerReferences bool
	// ConfineToNamespace lets runs write in the namespace of their CR alone.
	ConfineToNamespace bool
	// DefaultServiceAccount names the service account of each CR's namespace as which its runs
	// use the API, where neither the watch nor the CR names one; "": they have the manager's rights.
	DefaultServiceAccount string
	// ProxyPort is the port at 127.0.0.1 of the API proxy of runs; 0 takes any free one.
	ProxyPort int
	// ProxyOpenPort is one where sidecars reach the API as the manager, without a token; 0: none.
	ProxyOpenPort int
	// ChildrenUnusedAfter is how long the manager watches a kind without children; 0: ten minutes.
	ChildrenUnusedAfter time.Duration

	// Registerer takes the metrics of runs; nil: controller-runtime's registry, which the process
	// has once. If two managers run in one process, one of them needs another registry. The manager
	// removes its metrics from it at its end. The metrics of controller-runtime itself are always in
	// controller-runtime's registry.
	Registerer prometheus.Registerer
	// UserMetricsBindAddress is where roles post metrics of their own, such as 127.0.0.1:5050,
	// where modules of the operator SDK post to; "" and "0": nowhere.
	UserMetricsBindAddress string
	// UserMetricsNeedToken accepts them only with the token of a running run.
	UserMetricsNeedToken bool

	// TracerProvider makes the spans of runs. It is the program's, which ends it after the manager.
	// nil: one of the manager that sends to the collector which OpenTelemetry's variables of the process
	// name, such as OTEL_EXPORTER_OTLP_ENDPOINT; without them there are no spans.
	TracerProvider trace.TracerProvider

	// SettingName returns the name of a field of Options, such as RunDir, in the messages of runs
	// for readers of a log or a status; nil: "Options.RunDir". A program with flags names those.
	SettingName func(field string) string

	// TaskEvents says how much of runs the log shows: TaskEventsNothing, TaskEventsTasks, which is
	// the default, or TaskEventsEverything.
	TaskEvents string
	// TaskOutput takes the output of tasks as blocks of text, each in one Write. It is the stream
	// of the logger, locked, so that lines and blocks do not mix. nil: the output stands in the
	// field "block" of the task's line.
	TaskOutput io.Writer
}

// DefaultRunDir returns the run directory of a manager that is given none: one below the directory
// of temporary files, by the number of the user.
func DefaultRunDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("ensign-%d", os.Geteuid()))
}

// WithDefaults returns the settings with defaults for those that are not given, except Registerer.
func (o Options) WithDefaults() (Options, error) {
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil { // Runs have directories of their own. "" is the working directory.
		return o, &Error{"Dir", "", fmt.Errorf("find the working directory: %w", err)}
	}
	if o.Executable == "" {
		if o.Executable, err = os.Executable(); err != nil {
			return o, &Error{"Executable", "", fmt.Errorf("find the path of this program: %w", err)}
		}
	}
	if o.Executable, err = filepath.Abs(o.Executable); err != nil {
		return o, &Error{"Executable", "", fmt.Errorf("find the working directory: %w", err)}
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.RunDir == "" {
		o.RunDir = DefaultRunDir()
	}
	if o.ReconcilePeriod == 0 {
		o.ReconcilePeriod = DefaultReconcilePeriod
	}
	if o.ArtifactsMaxBytes == 0 {
		o.ArtifactsMaxBytes = DefaultArtifactsMaxBytes
	}
	if o.MaxBackoff == 0 {
		o.MaxBackoff = DefaultMaxBackoff
	}
	if o.MaxConcurrentReconciles == 0 {
		o.MaxConcurrentReconciles = runtime.GOMAXPROCS(0)
	}
	if o.TaskEvents == "" {
		o.TaskEvents = TaskEventsTasks
	}
	return o, nil
}

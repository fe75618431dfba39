package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/pkg/options"
)

// flagGroup is a group of flags in the help.
type flagGroup struct {
	title string
	flags *pflag.FlagSet
}

// Flags are the flags of "manager run". Other commands take some of them, so that one flag means
// the same everywhere.
type Flags struct {
	Options   config.Options
	artifacts resource.QuantityValue
	// Flags that say yes where an option says no.
	warm, injectOwnerRef, userMetricsOpen bool

	logFormat string
	zap       zap.Options
	logFlags  *pflag.FlagSet
	groups    []flagGroup
}

// NewFlags returns the flags with their defaults, which no command has yet.
func NewFlags() *Flags {
	f := &Flags{artifacts: resource.QuantityValue{Quantity: resource.MustParse("1Gi")}}
	f.addGroup("Content", f.addContentFlags)
	f.addGroup("Runs", f.addRunFlags)
	f.addGroup("API access", f.addAPIFlags)
	f.addGroup("Metrics and probes", f.addServingFlags)
	f.addGroup("Leader election and shutdown", f.addElectionFlags)
	f.addGroup("Logs", f.addLogFlags)
	return f
}

func (f *Flags) addGroup(title string, define func(*pflag.FlagSet, *config.Options)) {
	set := pflag.NewFlagSet(title, pflag.ContinueOnError)
	set.SortFlags = false
	define(set, &f.Options)
	f.groups = append(f.groups, flagGroup{title, set})
}

func (f *Flags) addContentFlags(set *pflag.FlagSet, o *config.Options) {
	set.StringVar(&o.WatchesFile, "watches-file", "./watches.yaml", "`file` that says which kinds run which content")
	set.StringVar(&o.AnsibleRolesPath, "ansible-roles-path", "", "`directories`, joined by \":\", where roles are searched; overrides ANSIBLE_ROLES_PATH")
	set.StringVar(&o.AnsibleCollectionsPath, "ansible-collections-path", "", "`directories`, joined by \":\", where collections are searched; overrides ANSIBLE_COLLECTIONS_PATH")
	set.BoolVar(&o.SuppressOverrideValues, "suppress-override-values", false, "do not show the values of overrideValues in Events")
	set.StringVar(&o.AnsibleArgs, "ansible-args", "", "further `arguments` of ansible-playbook, quoted as for a shell; quotes around the whole value are removed")
	set.IntVar(&o.AnsibleVerbosity, "ansible-verbosity", 2, "Ansible's verbosity: a `number` of -v, 0 to 7; a watch's verbosity, ANSIBLE_VERBOSITY_<KIND>_<GROUP> and a resource's annotation override it")
	set.IntVar(&o.MaxVerbosity, "max-verbosity", 2, "the highest `number` to which a resource's annotation can set the verbosity, 0 to 7")
}

func (f *Flags) addRunFlags(set *pflag.FlagSet, o *config.Options) {
	set.DurationVar(&o.ReconcilePeriod, "reconcile-period", 10*time.Hour, "`pause` after which a resource runs again although nothing triggers it; 0s is never. A watch's reconcilePeriod and a resource's annotation override it")
	set.IntVar(&o.MaxConcurrentReconciles, "max-concurrent-reconciles", runtime.GOMAXPROCS(0), "the highest `number` of runs of one watch at the same time, by default the number of processors; a watch's maxConcurrentReconciles and MAX_CONCURRENT_RECONCILES_<KIND>_<GROUP> override it")
	set.IntVar(&o.MaxConcurrentRuns, "max-concurrent-runs", 0, "the highest `number` of runs of all watches at the same time; 0: two for each processor or watch, as far as there are 160 MiB of memory for each")
	set.IntVar(&o.MaxConcurrentJobs, "max-concurrent-jobs", 50, "the highest `number` of runs in Jobs at the same time, of all watches")
	set.StringVar(&o.JobBindAddress, "job-bind-address", ":8445", "`address` where agents of runs in Jobs reach this manager; it listens only if a watch has executor: job")
	set.StringVar(&o.JobAddress, "job-address", "", "`host:port` where agents find all replicas of the manager; default the Service in the manager's namespace with the name of the lease and -jobs")
	set.DurationVar(&o.MaxBackoff, "max-backoff", 5*time.Minute, "the longest `pause` after consecutive failures; at least 1s")
	set.StringVar(&o.RunDir, "run-dir", options.DefaultRunDir(), "`directory`, private to the manager, for the inputs and artifacts of runs; it must be empty or absent at first")
	set.Var(&f.artifacts, "artifacts-max-bytes", "the most `bytes`, such as 512Mi, that artifacts of runs may take in the run directory; those of one resource may take a sixteenth of it. The oldest are removed first; 0 is no limit")
	set.DurationVar(&o.RunIdleTimeout, "run-idle-timeout", 0, "the longest `time` without a job event or output before a run is ended as hung; 0s is no limit")
	set.BoolVar(&f.warm, "warm", true, "fork runs from a server that has already imported Ansible, where the result is certain to be the same")
	set.StringSliceVar(&o.DropEnv, "drop-env", nil, "`names` of environment variables that runs do not get")
}

func (f *Flags) addAPIFlags(set *pflag.FlagSet, o *config.Options) {
	set.StringVar(&o.Kubeconfig, "kubeconfig", "", "`file` that tells how to reach the API server; default KUBECONFIG, ~/.kube/config, or the pod's service account")
	set.BoolVar(&f.injectOwnerRef, "inject-owner-ref", true, "add an owner reference to the custom resource to the objects that its runs create")
	set.DurationVar(&o.ChildrenUnusedAfter, "children-unused-after", 0, "")
	_ = set.MarkHidden("children-unused-after") // For tests, which cannot wait for ten minutes.
	set.BoolVar(&o.ConfineToNamespace, "confine-to-namespace", false, "let runs write in the namespace of their custom resource only")
	set.StringVar(&o.DefaultServiceAccount, "default-service-account", "", "`name` of the service account, in the namespace of each custom resource, as which its runs use the API, where the watch and the resource name none; default the operator's own account")
	set.IntVar(&o.ProxyPort, "proxy-port", 0, "`port` at 127.0.0.1 of the API proxy for runs; 0 takes any free one")
	set.IntVar(&o.ProxyOpenPort, "proxy-open-port", 0, "`port` at 127.0.0.1 where sidecars reach the API as the manager, without a token; 0 is none")
}

func (f *Flags) addServingFlags(set *pflag.FlagSet, o *config.Options) {
	set.StringVar(&o.MetricsBindAddress, "metrics-bind-address", ":8443", "`address` of the metrics endpoint; 0 switches it off")
	set.BoolVar(&o.MetricsSecure, "metrics-secure", true, "serve metrics with TLS; at a loopback address only if this flag or metrics-require-rbac is given")
	set.BoolVar(&o.MetricsRequireRBAC, "metrics-require-rbac", true, "serve metrics only to accounts that may get the non-resource URL /metrics; at a loopback address only if this flag or metrics-secure is given")
	set.BoolVar(&o.EnableHTTP2, "enable-http2", false, "let the metrics endpoint speak HTTP/2")
	set.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", ":6789", "`address` of /healthz and /readyz; 0 switches them off")
	set.StringVar(&o.PprofBindAddress, "pprof-bind-address", "0", "loopback `address` of profiles for go tool pprof, such as 127.0.0.1:6060; 0 switches them off")
	set.StringVar(&o.UserMetricsBindAddress, "user-metrics-bind-address", "127.0.0.1:5050", "`address` where roles post metrics of their own; 0 switches it off")
	set.BoolVar(&f.userMetricsOpen, "user-metrics-open", true, "also accept metrics without the token of a running run")
}

func (f *Flags) addElectionFlags(set *pflag.FlagSet, o *config.Options) {
	set.BoolVar(&o.LeaderElect, "leader-elect", false, "let only one of several replicas work at a time")
	set.StringVar(&o.WatchLabelSelector, "watch-label-selector", "", "`labels`, such as shard=a or !shard, of the custom resources that are this manager's; others are those of other managers with the same lease name. Needs --leader-elect")
	set.StringVar(&o.LeaderElectionID, "leader-election-id", "", "`name` of the lease; default OPERATOR_NAME")
	set.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "", "`namespace` of the lease; default the pod's")
	set.DurationVar(&o.LeaderElectLeaseDuration, "leader-elect-lease-duration", 15*time.Second, "`time` after which another replica may take a lease that is not renewed; at least 3s")
	set.DurationVar(&o.LeaderElectRenewDeadline, "leader-elect-renew-deadline", 10*time.Second, "`time` that the leader tries to renew before it gives up")
	set.DurationVar(&o.GracefulShutdownTimeout, "graceful-shutdown-timeout", 30*time.Second, "`time` to end runs and write their statuses; at least 10s")
}

func (f *Flags) addLogFlags(set *pflag.FlagSet, o *config.Options) {
	set.StringVar(&o.TaskEvents, "ansible-log-events", options.TaskEventsTasks, "`what` the log shows of runs: Nothing, Tasks (a line a task, and the output of failed ones) or Everything (the output of all)")
	set.StringVar(&f.logFormat, "log-format", "console", "`format`: pretty for people, console for people and grep, or json for one object a line; default pretty at a terminal, console elsewhere")
	zapFlags := flag.NewFlagSet("zap", flag.ContinueOnError)
	f.zap.BindFlags(zapFlags)
	set.AddGoFlagSet(zapFlags)
	// controller-runtime's usage texts name formats and defaults that differ from those here.
	for name, text := range map[string]string{
		"zap-devel":            "log debug lines too, and whole objects",
		"zap-encoder":          "`format`, the same as --log-format",
		"zap-log-level":        "`level`: info, debug, error, panic, or a number above 0; a higher number logs more",
		"zap-stacktrace-level": "lowest `level` whose lines have a stack trace: info, error or panic; none if not given",
		"zap-time-encoding":    "`format` of times: epoch, millis, nano, iso8601, rfc3339 or rfc3339nano; default iso8601",
	} {
		set.Lookup(name).Usage = text
	}
	f.logFlags = set
}

// addDeprecatedFlags adds flags that deployments of the ansible-operator base image may
// still set. pflag warns of each, and hides it from help and completion. The older
// spelling of a flag sets the same value: of the two, the last one counts.
func addDeprecatedFlags(set *pflag.FlagSet) {
	for older, newer := range map[string]string{
		"metrics-addr": "metrics-bind-address", "enable-leader-election": "leader-elect", "max-workers": "max-concurrent-reconciles",
	} {
		flag := *set.Lookup(newer)
		flag.Name, flag.Hidden, flag.Deprecated = older, true, "give --"+newer
		set.AddFlag(&flag)
	}
	for name, why := range map[string]string{
		"leader-elect-resource-lock": "and is ignored: the lock of leader election is always a Lease",
		"proxy-cache-max-bytes":      "and is ignored: reads of runs always go to the API server",
	} {
		set.String(name, "", "")
		_ = set.MarkDeprecated(name, why) // It fails only for an unknown flag or an empty text.
	}
}

// Complete returns the options that the flags set, or an error that names all invalid
// values. The options' logger writes to out.
func (f *Flags) Complete(out io.Writer) (config.Options, error) {
	o := f.Options
	o.AnsibleArgs = trimQuotes(o.AnsibleArgs)
	if config.IsLoopback(o.MetricsBindAddress) && !f.Lookup("metrics-secure").Changed && !f.Lookup("metrics-require-rbac").Changed {
		o.MetricsSecure, o.MetricsRequireRBAC = false, false // Older scaffolds put a proxy in front that does both.
	}
	o.Cold, o.NoOwnerReferences, o.UserMetricsNeedToken = !f.warm, !f.injectOwnerRef, !f.userMetricsOpen
	o.ArtifactsMaxBytes = orNone(f.artifacts.Value())
	o.SettingName = flagOf
	err := errors.Join(
		WithFlagNames(o.Options.Check()),
		checkNotNegative("--reconcile-period", o.ReconcilePeriod),
		checkNotNegative("--graceful-shutdown-timeout", o.GracefulShutdownTimeout),
		checkAtLeast("--max-backoff", o.MaxBackoff, o.MaxBackoff != 0, "1s"), // In options, 0 stands for the default.
		checkAtLeast("--max-concurrent-reconciles", o.MaxConcurrentReconciles, o.MaxConcurrentReconciles != 0, "1"),
		checkAtLeast("--artifacts-max-bytes", &f.artifacts, f.artifacts.Sign() >= 0, "0"),
		f.checkMetricsAuth(),
		f.setLogger(&o, out),
	)
	o.ReconcilePeriod = orNone(o.ReconcilePeriod)
	return o, err
}

// orNone returns a limit or period as options have it, where 0 stands for the default and -1 for
// none.
func orNone[T time.Duration | int64](value T) T {
	if value == 0 {
		return -1
	}
	return value
}

// Lookup returns the flag with the name, nil if there is none.
func (f *Flags) Lookup(name string) *pflag.Flag {
	for _, g := range f.groups {
		if flag := g.flags.Lookup(name); flag != nil {
			return flag
		}
	}
	return nil
}

// checkMetricsAuth returns an error if --metrics-require-rbac is given without --metrics-secure:
// readers of metrics would send their tokens without TLS. The default of --metrics-require-rbac is
// not an error.
func (f *Flags) checkMetricsAuth() error {
	if f.Options.MetricsRequireRBAC && !f.Options.MetricsSecure && f.Lookup("metrics-require-rbac").Changed {
		return errors.New("--metrics-require-rbac needs --metrics-secure: without TLS the tokens of readers could be read by others")
	}
	return nil
}

func checkNotNegative(name string, value time.Duration) error {
	if value < 0 {
		return fmt.Errorf("%s=%s: allowed is 0s and more", name, value)
	}
	return nil
}

func checkAtLeast(name string, value any, ok bool, least string) error {
	if !ok {
		return fmt.Errorf("%s=%v: allowed is %s and more", name, value, least)
	}
	return nil
}

package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/observe/eventlog"
)

// group is a set of flags that belong together in the help.
type group struct {
	title string
	flags *pflag.FlagSet
}

// runFlags are the flags of "manager run".
type runFlags struct {
	options   config.Options
	artifacts resource.QuantityValue
	logEvents string
	logFormat string
	zap       zap.Options
	logFlags  *pflag.FlagSet
	groups    []group
}

func newRunFlags() *runFlags {
	f := &runFlags{artifacts: resource.QuantityValue{Quantity: resource.MustParse("1Gi")}}
	f.group("Content", f.content)
	f.group("Runs", f.runs)
	f.group("API access", f.access)
	f.group("Metrics and probes", f.serving)
	f.group("Leader election and shutdown", f.leading)
	f.group("Logs", f.logging)
	return f
}

func (f *runFlags) group(title string, define func(*pflag.FlagSet, *config.Options)) {
	set := pflag.NewFlagSet(title, pflag.ContinueOnError)
	set.SortFlags = false
	define(set, &f.options)
	f.groups = append(f.groups, group{title, set})
}

func (f *runFlags) content(set *pflag.FlagSet, o *config.Options) {
	set.StringVar(&o.WatchesFile, "watches-file", "./watches.yaml", "`file` that says which kinds run which content")
	set.StringVar(&o.AnsibleRolesPath, "ansible-roles-path", "", "`directories`, joined by \":\", where roles are searched; over ANSIBLE_ROLES_PATH")
	set.StringVar(&o.AnsibleCollectionsPath, "ansible-collections-path", "", "`directories`, joined by \":\", where collections are searched; over ANSIBLE_COLLECTIONS_PATH")
	set.StringVar(&o.AnsibleArgs, "ansible-args", "", "further `arguments` of ansible-playbook, quoted as for a shell; quotes around all of them are taken off")
	set.IntVar(&o.AnsibleVerbosity, "ansible-verbosity", 2, "Ansible's verbosity: a `number` of -v, 0 to 7; over it go a watch's verbosity, ANSIBLE_VERBOSITY_<KIND>_<GROUP> and a resource's annotation")
	set.IntVar(&o.MaxVerbosity, "max-verbosity", 2, "the highest `number` that a resource's verbosity annotation gets, 0 to 7")
}

func (f *runFlags) runs(set *pflag.FlagSet, o *config.Options) {
	set.DurationVar(&o.ReconcilePeriod, "reconcile-period", 10*time.Hour, "`pause` between two runs of a resource that nothing else triggers; 0s is none. Over it go a watch's reconcilePeriod and a resource's annotation")
	set.IntVar(&o.MaxConcurrentReconciles, "max-concurrent-reconciles", runtime.GOMAXPROCS(0), "the highest `number` of live runs of one watch; over it go its maxConcurrentReconciles and MAX_CONCURRENT_RECONCILES_<KIND>_<GROUP>; if not given, the number of processors")
	set.IntVar(&o.MaxConcurrentRuns, "max-concurrent-runs", 0, "the highest `number` of live runs of all watches together; 0 takes two for each processor or watch, as far as the memory holds 160 MiB for each")
	set.DurationVar(&o.MaxBackoff, "max-backoff", 5*time.Minute, "the longest `pause` after failures in a row; at least 1s")
	set.StringVar(&o.RunDir, "run-dir", filepath.Join(os.TempDir(), fmt.Sprintf("ensign-%d", os.Geteuid())), "`directory`, private to the manager, for the inputs and artifacts of runs; at first empty or not there")
	set.Var(&f.artifacts, "artifacts-max-bytes", "the most `bytes` that artifacts of runs may take in the run directory, such as 512Mi; of one resource a sixteenth of it. The oldest go first; 0 is no limit")
	set.DurationVar(&o.RunIdleTimeout, "run-idle-timeout", 0, "the longest `time` without a job event or output before a run is ended as hung; 0s is no limit")
	set.BoolVar(&o.Warm, "warm", true, "fork runs and modules from servers that have imported Ansible already, where that is certain to make no difference")
	set.IntVar(&o.WarmServers, "warm-servers", 4, "for how many different environments of runs there are such servers, a set of two for each")
	set.StringSliceVar(&o.DropEnv, "drop-env", nil, "`names` of environment variables that runs do not get")
}

func (f *runFlags) access(set *pflag.FlagSet, o *config.Options) {
	set.StringVar(&o.Kubeconfig, "kubeconfig", "", "`file` that says how to reach the API server; default KUBECONFIG, ~/.kube/config, or the pod's service account")
	set.BoolVar(&o.InjectOwnerRef, "inject-owner-ref", true, "make what a run creates belong to its custom resource")
	set.DurationVar(&o.ChildrenUnused, "children-unused-after", 0, "")
	_ = set.MarkHidden("children-unused-after") // For tests, which can't wait for ten minutes.
	set.BoolVar(&o.ConfineToNamespace, "confine-to-namespace", false, "let runs write in the namespace of their custom resource only")
	set.IntVar(&o.ProxyPort, "proxy-port", 0, "`port` at 127.0.0.1 of the API proxy for runs; 0 takes any free one")
	set.IntVar(&o.ProxyOpenPort, "proxy-open-port", 0, "`port` at 127.0.0.1 where sidecars reach the API as the manager, without a token; 0 is none")
}

func (f *runFlags) serving(set *pflag.FlagSet, o *config.Options) {
	set.StringVar(&o.MetricsBindAddress, "metrics-bind-address", ":8443", "`address` of the metrics endpoint; 0 switches it off")
	set.BoolVar(&o.MetricsSecure, "metrics-secure", true, "serve metrics with TLS. At a loopback address only if this or metrics-require-rbac is given")
	set.BoolVar(&o.MetricsRequireRBAC, "metrics-require-rbac", true, "serve metrics only to who may get the non-resource URL /metrics. At a loopback address only if this or metrics-secure is given")
	set.BoolVar(&o.EnableHTTP2, "enable-http2", false, "let the metrics endpoint speak HTTP/2")
	set.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", ":6789", "`address` of /healthz and /readyz; 0 switches them off")
	set.StringVar(&o.PprofBindAddress, "pprof-bind-address", "0", "`address` of profiles for go tool pprof, such as 127.0.0.1:6060, which has to be a loopback one; 0 switches them off")
	set.StringVar(&o.UserMetricsBindAddress, "user-metrics-bind-address", "127.0.0.1:5050", "`address` where roles post metrics of their own; 0 switches it off")
	set.BoolVar(&o.UserMetricsOpen, "user-metrics-open", true, "take metrics without the token of a live run too")
}

func (f *runFlags) leading(set *pflag.FlagSet, o *config.Options) {
	set.BoolVar(&o.LeaderElect, "leader-elect", false, "let only one of several replicas be at work")
	set.StringVar(&o.LeaderElectionID, "leader-election-id", "", "`name` of the lease; default OPERATOR_NAME")
	set.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "", "`namespace` of the lease; default the pod's")
	set.DurationVar(&o.LeaderElectLeaseDuration, "leader-elect-lease-duration", 15*time.Second, "`time` after which another replica may take a lease that is not renewed; at least 3s")
	set.DurationVar(&o.LeaderElectRenewDeadline, "leader-elect-renew-deadline", 10*time.Second, "`time` that the leader tries to renew before it gives up")
	set.DurationVar(&o.GracefulShutdownTimeout, "graceful-shutdown-timeout", 30*time.Second, "`time` for the end of runs and for their statuses; at least 10s are taken")
}

func (f *runFlags) logging(set *pflag.FlagSet, _ *config.Options) {
	set.StringVar(&f.logEvents, "ansible-log-events", "Tasks", "`what` the log shows of runs: Nothing, Tasks (a line a task, and the output of failed ones) or Everything (the output of all)")
	set.StringVar(&f.logFormat, "log-format", "console", "`format`: console, or json for one object a line")
	zapFlags := flag.NewFlagSet("zap", flag.ContinueOnError)
	f.zap.BindFlags(zapFlags)
	set.AddGoFlagSet(zapFlags)
	// The texts of controller-runtime tell of formats and defaults that are not taken here.
	for name, text := range map[string]string{
		"zap-devel":            "log debug lines too, and whole objects",
		"zap-encoder":          "`format`, the same as --log-format",
		"zap-log-level":        "`level`: info, or debug, error, panic, or a number above 0: the higher, the more is told",
		"zap-stacktrace-level": "`level` from which on lines have a stack trace: info, error or panic; none if not given",
		"zap-time-encoding":    "`format` of times: epoch, millis, nano, iso8601, rfc3339 or rfc3339nano; default iso8601",
	} {
		set.Lookup(name).Usage = text
	}
	f.logFlags = set
}

// deprecated adds what deployments of the base image may still give; pflag warns of it,
// and help and completion leave it out. An older spelling sets the value of the newer
// one: of the two, the last counts.
func deprecated(set *pflag.FlagSet) {
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
		_ = set.MarkDeprecated(name, why) // It is there, and the text is not empty.
	}
}

// complete checks the flags, all of them at once, and gives the options. Logs go
// to out.
func (f *runFlags) complete(out io.Writer) (config.Options, error) {
	o := f.options
	o.AnsibleArgs = unwrapped(o.AnsibleArgs)
	if config.IsLoopback(o.MetricsBindAddress) && !f.lookup("metrics-secure").Changed && !f.lookup("metrics-require-rbac").Changed {
		o.MetricsSecure, o.MetricsRequireRBAC = false, false // A proxy in front does both, as in older scaffolds.
	}
	level, levelErr := eventlog.ParseLevel(f.logEvents)
	if levelErr != nil {
		levelErr = fmt.Errorf("--ansible-log-events: %w", levelErr)
	}
	err := errors.Join(
		levelErr,
		within("--ansible-verbosity", o.AnsibleVerbosity, 0, 7),
		within("--max-verbosity", o.MaxVerbosity, 0, 7),
		within("--max-concurrent-reconciles", o.MaxConcurrentReconciles, 1, 1<<16),
		within("--max-concurrent-runs", o.MaxConcurrentRuns, 0, 1<<16),
		within("--warm-servers", o.WarmServers, 1, 64),
		within("--proxy-port", o.ProxyPort, 0, 1<<16-1),
		within("--proxy-open-port", o.ProxyOpenPort, 0, 1<<16-1),
		notNegative("--reconcile-period", o.ReconcilePeriod),
		notNegative("--run-idle-timeout", o.RunIdleTimeout),
		notNegative("--graceful-shutdown-timeout", o.GracefulShutdownTimeout),
		atLeastASecond("--max-backoff", o.MaxBackoff),
		closed("--ansible-args", o.AnsibleArgs),
		noneOrAtLeast("--artifacts-max-bytes", f.artifacts, 1<<20),
		f.protected(),
		f.setLogger(&o, out),
	)
	o.ArtifactsMaxBytes = f.artifacts.Value()
	o.LogEvents = level
	return o, err
}

// lookup returns a flag of the groups there are.
func (f *runFlags) lookup(name string) *pflag.Flag {
	for _, g := range f.groups {
		if flag := g.flags.Lookup(name); flag != nil {
			return flag
		}
	}
	return nil
}

// protected refuses to ask readers of metrics for a token where all could read it.
// Who says nothing of --metrics-require-rbac has seen to that by other means.
func (f *runFlags) protected() error {
	if f.options.MetricsRequireRBAC && !f.options.MetricsSecure && f.lookup("metrics-require-rbac").Changed {
		return errors.New("--metrics-require-rbac needs --metrics-secure: without TLS the tokens of readers could be read by others")
	}
	return nil
}

func within(name string, value, low, high int) error {
	if value < low || value > high {
		return fmt.Errorf("%s=%d: allowed is %d to %d", name, value, low, high)
	}
	return nil
}

func notNegative(name string, value time.Duration) error {
	if value < 0 {
		return fmt.Errorf("%s=%s: allowed is 0s and more", name, value)
	}
	return nil
}

func atLeastASecond(name string, value time.Duration) error {
	if value < time.Second {
		return fmt.Errorf("%s=%s: allowed is 1s and more", name, value)
	}
	return nil
}

func noneOrAtLeast(name string, value resource.QuantityValue, least int64) error {
	if value.Sign() != 0 && value.Value() < least {
		return fmt.Errorf("%s=%s: allowed is 0, or %s and more", name, &value, resource.NewQuantity(least, resource.BinarySI))
	}
	return nil
}

package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/ensign-operator/ensign/pkg/options"
)

// validOptions returns options that Check accepts, in a directory with an inventory.
func validOptions(t *testing.T) Options {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hosts"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return Options{
		Options:            options.Options{Dir: dir, UserMetricsBindAddress: "127.0.0.1:5050"},
		MetricsBindAddress: ":8443", HealthProbeBindAddress: ":6789",
	}
}

func TestValidSettings(t *testing.T) {
	for why, test := range map[string]struct {
		change func(*Options)
		env    Environment
	}{
		"the usual ones":                         {},
		"nothing listens":                        {change: func(o *Options) { o.MetricsBindAddress, o.HealthProbeBindAddress = "0", "0" }},
		"profiles at a loopback address":         {change: func(o *Options) { o.PprofBindAddress = "[::1]:6060" }},
		"any free ports":                         {change: func(o *Options) { o.MetricsBindAddress, o.HealthProbeBindAddress = "127.0.0.1:0", "127.0.0.1:0" }},
		"one port of two addresses":              {change: func(o *Options) { o.MetricsBindAddress, o.HealthProbeBindAddress = "10.0.0.1:80", "10.0.0.2:80" }},
		"values of variables":                    {env: Environment{"ANSIBLE_GATHERING": "smart", "ANSIBLE_DEBUG_LOGS": "True", "WATCH_NAMESPACE": "a, b,", "ANSIBLE_INVENTORY": "hosts"}},
		"variables that are set and say nothing": {env: Environment{"ANSIBLE_GATHERING": "", "ANSIBLE_DEBUG_LOGS": "", "WATCH_NAMESPACE": "", "ANSIBLE_INVENTORY": ""}},
	} {
		t.Run(why, func(t *testing.T) {
			o := validOptions(t)
			if test.change != nil {
				test.change(&o)
			}
			o.Env = test.env
			if err := o.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCheckReportsAllInvalidSettings(t *testing.T) {
	for why, test := range map[string]struct {
		change func(*Options)
		env    Environment
		want   []string
	}{
		"an address without a port":      {func(o *Options) { o.MetricsBindAddress = "8443" }, nil, []string{"--metrics-bind-address=8443", ":8443", "0"}},
		"no address":                     {func(o *Options) { o.HealthProbeBindAddress = "" }, nil, []string{"--health-probe-bind-address=", "0 for none"}},
		"a port that is none":            {func(o *Options) { o.HealthProbeBindAddress = ":70000" }, nil, []string{"--health-probe-bind-address=:70000"}},
		"profiles for everybody":         {func(o *Options) { o.PprofBindAddress = ":6060" }, nil, []string{"--pprof-bind-address=:6060", "loopback"}},
		"profiles for other hosts":       {func(o *Options) { o.PprofBindAddress = "10.0.0.1:6060" }, nil, []string{"--pprof-bind-address=10.0.0.1:6060", "loopback"}},
		"profiles without a port":        {func(o *Options) { o.PprofBindAddress = "localhost" }, nil, []string{"--pprof-bind-address=localhost"}},
		"profiles at the probes' port":   {func(o *Options) { o.PprofBindAddress = "127.0.0.1:6789" }, nil, []string{"--pprof-bind-address=127.0.0.1:6789", "--health-probe-bind-address=:6789"}},
		"one port for two":               {func(o *Options) { o.MetricsBindAddress = "127.0.0.1:6789" }, nil, []string{"--metrics-bind-address=127.0.0.1:6789", "--health-probe-bind-address=:6789", "same port"}},
		"the proxy's port twice":         {func(o *Options) { o.ProxyPort, o.ProxyOpenPort = 8888, 8888 }, nil, []string{"--proxy-port=8888", "--proxy-open-port=8888"}},
		"roles' metrics and the proxy's": {func(o *Options) { o.ProxyPort = 5050 }, nil, []string{"--user-metrics-bind-address=127.0.0.1:5050", "--proxy-port=5050"}},
		"the proxy's and the metrics'":   {func(o *Options) { o.ProxyPort = 8443 }, nil, []string{"--proxy-port=8443", "--metrics-bind-address=:8443"}},
		"a namespace that can't be":      {nil, Environment{"WATCH_NAMESPACE": "a,b c"}, []string{"WATCH_NAMESPACE", `"b c"`, "all namespaces"}},
		"a way to gather facts":          {nil, Environment{"ANSIBLE_GATHERING": "Explicit"}, []string{"ANSIBLE_GATHERING=Explicit", "implicit, explicit, smart"}},
		"an inventory that is not":       {nil, Environment{"ANSIBLE_INVENTORY": "a,b"}, []string{"ANSIBLE_INVENTORY", "one file or directory", "a,b"}},
		"logs for debugging":             {nil, Environment{"ANSIBLE_DEBUG_LOGS": "yes"}, []string{"ANSIBLE_DEBUG_LOGS=yes", "true and false"}},
		"two faults":                     {func(o *Options) { o.MetricsBindAddress = "x" }, Environment{"ANSIBLE_DEBUG_LOGS": "yes"}, []string{"--metrics-bind-address=x", "ANSIBLE_DEBUG_LOGS=yes"}},
	} {
		t.Run(why, func(t *testing.T) {
			o := validOptions(t)
			if test.change != nil {
				test.change(&o)
			}
			o.Env = test.env
			err := o.Check()
			for _, text := range test.want {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("want an error that says %q, got %v", text, err)
				}
			}
		})
	}
}

func TestWithEnvironment(t *testing.T) {
	var logged []string
	log := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
	o := Options{LeaderElect: true, Logger: log, Env: Environment{"OPERATOR_NAME": "lease", "ANSIBLE_DEBUG_LOGS": "true"}}.WithEnvironment()
	if o.TaskEvents != options.TaskEventsEverything {
		t.Errorf("ANSIBLE_DEBUG_LOGS: got %s", o.TaskEvents)
	}
	if !slices.ContainsFunc(logged, func(line string) bool {
		return strings.Contains(line, "OPERATOR_NAME") && strings.Contains(line, "--leader-election-id")
	}) {
		t.Errorf("want a warning of OPERATOR_NAME, got %q", logged)
	}
	logged = nil
	if o := (Options{Logger: log, Env: Environment{"OPERATOR_NAME": "x", "ANSIBLE_DEBUG_LOGS": "0"}}).WithEnvironment(); o.TaskEvents != "" || logged != nil {
		t.Errorf("want nothing changed and said, got %s, %q", o.TaskEvents, logged)
	}
}

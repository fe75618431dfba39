package options

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheZeroValueIsValid(t *testing.T) {
	if err := (Options{}).Check(); err != nil {
		t.Error(err)
	}
	o, err := Options{}.WithDefaults()
	if err != nil || o.Check() != nil {
		t.Fatalf("got %v, %v", err, o.Check())
	}
	if o.Dir == "" || o.Environ == nil || o.Executable == "" || o.RunDir == "" || o.ReconcilePeriod != 10*time.Hour || o.MaxBackoff != 5*time.Minute || o.ArtifactsMaxBytes != 1<<30 ||
		o.MaxConcurrentReconciles < 1 || o.TaskEvents != TaskEventsTasks {
		t.Errorf("got %+v", o)
	}
}

func TestNoLimitStaysNone(t *testing.T) {
	o, err := Options{ReconcilePeriod: -1, ArtifactsMaxBytes: -1}.WithDefaults()
	if err != nil || o.ReconcilePeriod >= 0 || o.ArtifactsMaxBytes >= 0 || o.Check() != nil {
		t.Errorf("got %v, %d, %v, %v", o.ReconcilePeriod, o.ArtifactsMaxBytes, err, o.Check())
	}
}

func TestEachErrorNamesItsField(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"Options.AnsibleVerbosity=8: allowed is 0 to 7":                   func(o *Options) { o.AnsibleVerbosity = 8 },
		"Options.MaxVerbosity=-1: ":                                       func(o *Options) { o.MaxVerbosity = -1 },
		"Options.MaxConcurrentReconciles=-1: ":                            func(o *Options) { o.MaxConcurrentReconciles = -1 },
		"Options.MaxConcurrentRuns=65537: ":                               func(o *Options) { o.MaxConcurrentRuns = 1<<16 + 1 },
		"Options.ProxyPort=65536: ":                                       func(o *Options) { o.ProxyPort = 1 << 16 },
		"Options.ProxyOpenPort=-1: ":                                      func(o *Options) { o.ProxyOpenPort = -1 },
		"Options.RunIdleTimeout=-1s: ":                                    func(o *Options) { o.RunIdleTimeout = -time.Second },
		"Options.MaxBackoff=10ms: allowed is 1s":                          func(o *Options) { o.MaxBackoff = 10 * time.Millisecond },
		"Options.ArtifactsMaxBytes=1048575: ":                             func(o *Options) { o.ArtifactsMaxBytes = 1<<20 - 1 },
		"Options.AnsibleArgs: the value ends inside quotes":               func(o *Options) { o.AnsibleArgs = `--tags "it's` },
		`Options.DropEnv: invalid name of an environment variable: "A=b"`: func(o *Options) { o.DropEnv = []string{"OK", "A=b"} },
		"Options.UserMetricsBindAddress=5050: ":                           func(o *Options) { o.UserMetricsBindAddress = "5050" },
		"Options.TaskEvents=Some: allowed are Nothing, ":                  func(o *Options) { o.TaskEvents = "Some" },
	} {
		o := Options{}
		change(&o)
		err := o.Check()
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
		if named, ok := errors.AsType[*Error](err); !ok || !strings.HasPrefix(want, "Options."+named.Field) {
			t.Errorf("%q: got the type %T", want, err)
		}
	}
}

// Programs are started in directories of their own runs, where a relative path would be another.
func TestRelativePathsBecomeAbsolute(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	o, err := Options{Dir: "operator", Executable: filepath.Join("bin", "manager")}.WithDefaults()
	if err != nil || o.Dir != filepath.Join(here, "operator") || o.Executable != filepath.Join(here, "bin", "manager") {
		t.Errorf("got %q and %q, %v", o.Dir, o.Executable, err)
	}
}

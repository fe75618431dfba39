package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestOlderSpellingsAreReadWithAWarning(t *testing.T) {
	for args, test := range map[string]struct {
		warned string
		want   func(f *runFlags) bool
	}{
		"--metrics-addr=:1":                         {"--metrics-bind-address", func(f *runFlags) bool { return f.options.MetricsBindAddress == ":1" }},
		"--enable-leader-election":                  {"--leader-elect", func(f *runFlags) bool { return f.options.LeaderElect }},
		"--enable-leader-election=false":            {"--leader-elect", func(f *runFlags) bool { return !f.options.LeaderElect }},
		"--max-workers=7":                           {"--max-concurrent-reconciles", func(f *runFlags) bool { return f.options.MaxConcurrentReconciles == 7 }},
		"--leader-elect-resource-lock=endpoints":    {"ignored", func(f *runFlags) bool { return !f.options.LeaderElect }},
		"--proxy-cache-max-bytes=256Mi":             {"ignored", func(*runFlags) bool { return true }},
		"--max-workers=7 --max-workers=8":           {"--max-workers", func(f *runFlags) bool { return f.options.MaxConcurrentReconciles == 8 }},
		"--leader-elect --enable-leader-election":   {"--enable-leader-election", func(f *runFlags) bool { return f.options.LeaderElect }},
		"--metrics-addr=0 --metrics-bind-address=0": {"--metrics-addr", func(f *runFlags) bool { return f.options.MetricsBindAddress == "0" }},
	} {
		t.Run(args, func(t *testing.T) {
			var log bytes.Buffer
			f := parse(t, strings.Fields(args)...)
			if _, err := f.complete(&log); err != nil {
				t.Fatal(err)
			}
			name, _, _ := strings.Cut(strings.Fields(args)[0], "=")
			if !test.want(f) || !strings.Contains(log.String(), test.warned) || !strings.Contains(log.String(), name) || !strings.Contains(log.String(), "WARNING") {
				t.Errorf("got %+v\n%s", f.options, log.String())
			}
		})
	}
	var log bytes.Buffer
	if _, err := parse(t, "--metrics-bind-address=0").complete(&log); err != nil || log.Len() > 0 {
		t.Errorf("want no warning of newer spellings, got %v, %s", err, log.String())
	}
}

func TestFlagsThatContradictEachOther(t *testing.T) {
	for args, wantNames := range map[string]string{
		"--metrics-addr=:1 --metrics-bind-address=:2":   "--metrics-addr=:1 --metrics-bind-address=:2",
		"--metrics-bind-address=:2 --metrics-addr=:1":   "--metrics-addr=:1 --metrics-bind-address=:2",
		"--leader-elect=false --enable-leader-election": "--enable-leader-election=true --leader-elect=false",
		"--max-workers=1 --max-concurrent-reconciles=2": "--max-workers=1 --max-concurrent-reconciles=2",
		"--metrics-secure=false --metrics-require-rbac": "--metrics-require-rbac --metrics-secure",
		"--max-workers=0": "--max-concurrent-reconciles=0",
		"--max-workers=1 --max-concurrent-reconciles=2 --ansible-verbosity=8": "--max-workers=1 --ansible-verbosity=8",
	} {
		t.Run(args, func(t *testing.T) {
			_, err := parse(t, strings.Fields(args)...).complete(&bytes.Buffer{})
			for name := range strings.FieldsSeq(wantNames) {
				if err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("want an error that names %s, got %v", name, err)
				}
			}
		})
	}
	if _, err := parse(t, "--metrics-secure=false").complete(&bytes.Buffer{}); err != nil {
		t.Errorf("who says nothing of RBAC may switch TLS off: %v", err)
	}
	cmd := &cobra.Command{}
	newRunFlags().register(cmd)
	if err := cmd.ParseFlags([]string{"--max-workers=many"}); err == nil || !strings.Contains(err.Error(), "--max-workers") {
		t.Errorf("want an error that names the flag as it was given, got %v", err)
	}
}

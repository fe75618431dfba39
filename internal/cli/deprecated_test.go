package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// parseWithWarnings parses the arguments and also returns what the command prints.
func parseWithWarnings(t *testing.T, args ...string) (*Flags, string) {
	t.Helper()
	var out bytes.Buffer
	flags, cmd := NewFlags(), &cobra.Command{}
	cmd.SetOut(&out)
	flags.Register(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return flags, out.String()
}

func TestDeprecatedSpellingsAreAcceptedWithAWarning(t *testing.T) {
	for args, test := range map[string]struct {
		says string
		want func(f *Flags) bool
	}{
		"--metrics-addr=:1":                             {"give --metrics-bind-address", func(f *Flags) bool { return f.Options.MetricsBindAddress == ":1" }},
		"--enable-leader-election":                      {"give --leader-elect", func(f *Flags) bool { return f.Options.LeaderElect }},
		"--enable-leader-election=false":                {"give --leader-elect", func(f *Flags) bool { return !f.Options.LeaderElect }},
		"--max-workers=7":                               {"give --max-concurrent-reconciles", func(f *Flags) bool { return f.Options.MaxConcurrentReconciles == 7 }},
		"--leader-elect-resource-lock=endpoints":        {"ignored", func(f *Flags) bool { return !f.Options.LeaderElect }},
		"--proxy-cache-max-bytes=256Mi":                 {"ignored", func(*Flags) bool { return true }},
		"--max-workers=7 --max-workers=8":               {"--max-workers", func(f *Flags) bool { return f.Options.MaxConcurrentReconciles == 8 }},
		"--max-workers=1 --max-concurrent-reconciles=2": {"--max-workers", func(f *Flags) bool { return f.Options.MaxConcurrentReconciles == 2 }},
		"--enable-leader-election --leader-elect=false": {"--enable-leader-election", func(f *Flags) bool { return !f.Options.LeaderElect }},
	} {
		t.Run(args, func(t *testing.T) {
			f, said := parseWithWarnings(t, strings.Fields(args)...)
			if _, err := f.Complete(&bytes.Buffer{}); err != nil {
				t.Fatal(err)
			}
			name, _, _ := strings.Cut(strings.Fields(args)[0], "=")
			if want := "Flag " + name + " has been deprecated, "; !test.want(f) || !strings.Contains(said, want) || !strings.Contains(said, test.says) {
				t.Errorf("got %+v, and %q was said", f.Options, said)
			}
		})
	}
	if f, said := parseWithWarnings(t, "--metrics-bind-address=:1", "--max-concurrent-reconciles=2", "--max-workers=1"); f.Options.MaxConcurrentReconciles != 1 || strings.Contains(said, "metrics") {
		t.Errorf("want the last spelling to count and no warning of newer ones, got %+v, %q", f.Options, said)
	}
}

func TestFlagsThatContradictEachOther(t *testing.T) {
	for args, wantNames := range map[string]string{
		"--metrics-secure=false --metrics-require-rbac": "--metrics-require-rbac --metrics-secure",
		"--max-workers=0":                       "--max-concurrent-reconciles=0",
		"--max-workers=0 --ansible-verbosity=8": "--max-concurrent-reconciles=0 --ansible-verbosity=8",
	} {
		t.Run(args, func(t *testing.T) {
			_, err := parse(t, strings.Fields(args)...).Complete(&bytes.Buffer{})
			for name := range strings.FieldsSeq(wantNames) {
				if err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("want an error that names %s, got %v", name, err)
				}
			}
		})
	}
	if _, err := parse(t, "--metrics-secure=false").Complete(&bytes.Buffer{}); err != nil {
		t.Errorf("who says nothing of RBAC may switch TLS off: %v", err)
	}
	cmd := &cobra.Command{}
	NewFlags().Register(cmd)
	if err := cmd.ParseFlags([]string{"--max-workers=many"}); err == nil || !strings.Contains(err.Error(), "--max-workers") {
		t.Errorf("want an error that names the flag as it was given, got %v", err)
	}
}

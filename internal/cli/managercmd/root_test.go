package managercmd

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/cli"
)

func TestCommandsShowTheirOwnFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want bool
	}{
		"the manager itself":         {[]string{"--help"}, true},
		"run, which is the same":     {[]string{"run", "--help"}, true},
		"version takes none of them": {[]string{"version", "--help"}, false},
		"and so does can-uninstall":  {[]string{"can-uninstall", "--help"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			root := New(cli.Build{})
			root.SetArgs(test.args)
			root.SetOut(&out)
			if err := root.Execute(); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(out.String(), "--watches-file"); got != test.want || !strings.Contains(out.String(), "Usage:") {
				t.Errorf("want the flags of run: %t, got:\n%s", test.want, out.String())
			}
		})
	}
}

func TestAFlagOfOtherOperatorsNamesItsVariable(t *testing.T) {
	for arg, want := range map[string]bool{"--watch-namespace=ns": true, "--watch-namespaces=ns": false} {
		err := cli.Execute(t.Context(), New(cli.Build{}), "manager", []string{"run", arg})
		if err == nil || strings.Contains(err.Error(), "WATCH_NAMESPACE") != want || !strings.Contains(err.Error(), `"manager run --help"`) {
			t.Errorf("%s: want an error that names the variable: %t, got %v", arg, want, err)
		}
	}
}

func TestALeasesNameOfTheEnvironmentIsNamedByItsVariable(t *testing.T) {
	t.Setenv("OPERATOR_NAME", "No_Name")
	for flag, want := range map[string]string{"--leader-elect": "OPERATOR_NAME=No_Name: invalid name of a", "--leader-election-id=No-Flag": "--leader-election-id=No-Flag: invalid name of a"} {
		err := cli.Execute(t.Context(), New(cli.Build{}), "manager", []string{"run", "--leader-elect", "--leader-election-namespace=a", "--leader-elect-renew-deadline=15s", flag})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "invalid name of a") != 1 || !strings.Contains(err.Error(), "--leader-elect-renew-deadline=15s") {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestAnUnknownFlagRefersToTheHelp(t *testing.T) {
	root := New(cli.Build{})
	root.SetArgs([]string{"run", "--nope"})
	err := root.Execute()
	if err == nil || !strings.Contains(err.Error(), "--nope") || !strings.Contains(err.Error(), `"manager run --help"`) {
		t.Errorf("got %v", err)
	}
}

func TestDeprecatedFlagsAreAcceptedAndHidden(t *testing.T) {
	for _, args := range [][]string{{"run", "--help"}, {"__complete", "run", "--m"}} {
		var out bytes.Buffer
		root := New(cli.Build{})
		root.SetArgs(args)
		root.SetOut(&out)
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "--max-concurrent-reconciles") || strings.Contains(out.String(), "--max-workers") || strings.Contains(out.String(), "--metrics-addr") {
			t.Errorf("%q: want the newer spellings alone, got\n%s", args, out.String())
		}
	}
}

// Whoever mends what the first error says must not meet a fault of his file only then.
func TestFaultsOfTheFileComeBeforeAMissingKubeconfig(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // There is no Python.
	for text, want := range map[string]string{
		"- {group: g.io, version: v1, kind: K, chart: nowhere}\n":   "nowhere",
		"- {group: g.io, version: v1, kind: K, role: r, nope: 1}\n": "nope",
		"- {group: g.io, version: v1, kind: K, chart: c}\n":         "/no/such/kubeconfig",
		"---\n[]\n": "watches.yaml: the list is empty",
	} {
		t.Chdir(t.TempDir())
		if err := errors.Join(os.Mkdir("c", 0o700), os.WriteFile("c/Chart.yaml", []byte("{apiVersion: v2, name: c, version: 0.1.0}\n"), 0o600), os.WriteFile("watches.yaml", []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		err := cli.Execute(t.Context(), New(cli.Build{}), "manager", []string{"run", "--kubeconfig=/no/such/kubeconfig", "--metrics-bind-address=0", "--health-probe-bind-address=0"})
		if err == nil || !strings.Contains(err.Error(), want) || want == "nope" && strings.Contains(err.Error(), "kubeconfig") {
			t.Errorf("want %q in %v", want, err)
		}
	}
}

func TestAnUnknownCommandIsMisuse(t *testing.T) {
	for args, want := range map[string]string{"verson": "\tversion\n", "nosuch": `"nosuch"`, "run nosuch": `"nosuch"`, "--zap-devel=true nosuch": `"nosuch"`} {
		if err := cli.Execute(t.Context(), New(cli.Build{}), "manager", strings.Fields(args)); cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got exit code %d, %v", args, cli.ExitCode(err), err)
		}
	}
}

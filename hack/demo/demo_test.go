// Package demo_test runs the guided tour where it must fail.
package demo_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestATourThatCannotGoOnSaysWhyAndFails(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "kubectl"), []byte("#!/bin/sh\necho the server is away\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		env  []string
		want []string
	}{
		"another KEEP is a slip":            {[]string{"KEEP=yes"}, []string{`KEEP is "yes"`}},
		"another DEMO_CLUSTER is a slip":    {[]string{"DEMO_CLUSTER=mine"}, []string{`DEMO_CLUSTER is "mine"`}},
		"the current cluster must be named": {[]string{"DEMO_CLUSTER=current"}, []string{"needs KUBECONFIG"}},
		"a step that fails is named": {
			[]string{"DEMO_CLUSTER=current", "KUBECONFIG=/k"},
			[]string{"$ kubectl create namespace ensign-demo-", "the server is away", "FAILED in step 1, Join your cluster (exit code 3)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("./demo.sh")
			cmd.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH")}, test.env...)
			output, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("got %v, want exit code 1", err)
			}
			for _, want := range test.want {
				if !strings.Contains(string(output), want) {
					t.Errorf("got %q, want %q in it", output, want)
				}
			}
		})
	}
}

func TestWhatTheTourNeedsIsMadeInCountedSteps(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "make"), []byte("#!/bin/sh\necho \"made: $*\"\n[ \"$1\" != \"$FAILS\" ]\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		env  []string
		code int
		want []string
	}{
		"for a cluster of its own": {nil, 0, []string{"1/4", "made: python", "2/4 bin/manager\n", "made: manager\n", "3/4 Kubernetes", "made: controlplane", "4/4 bin/devcluster", "1/4 done after", "the programs of the tour are there"}},
		"for another cluster":      {[]string{"DEMO_CLUSTER=current"}, 0, []string{"1/2", "2/2 bin/manager\n", "the programs of the tour are there"}},
		"for who goes on by hand":  {[]string{"KEEP=1"}, 0, []string{"2/4 bin/manager bin/ensign\n", "made: manager ensign\n"}},
		"a step that fails":        {[]string{"FAILS=controlplane"}, 1, []string{"FAILED after", "3/4 Kubernetes"}},
		"the step beside fails":    {[]string{"FAILS=python"}, 1, []string{"1/4 FAILED: Ansible"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("./programs.sh")
			cmd.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH")}, test.env...)
			output, _ := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != test.code {
				t.Errorf("got exit code %d, want %d", cmd.ProcessState.ExitCode(), test.code)
			}
			for _, want := range test.want {
				if !strings.Contains(string(output), want) {
					t.Errorf("got %q, want %q in it", output, want)
				}
			}
		})
	}
}

// TestAClusterThatAnswersIsNamedFirst: who has one need not wait for a Kubernetes to be compiled.
func TestAClusterThatAnswersIsNamedFirst(t *testing.T) {
	bin := t.TempDir()
	for name, text := range map[string]string{
		"make":    "#!/bin/sh\necho \"made: $*\"\n",
		"kubectl": "#!/bin/sh\ncase \"$*\" in *current-context) echo kind-mine ;; *) exit \"$AWAY\" ;; esac\n",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		env   []string
		named bool
	}{
		"it answers":      {[]string{"AWAY=0"}, true},
		"it does not":     {[]string{"AWAY=1"}, false},
		"it is taken now": {[]string{"AWAY=0", "DEMO_CLUSTER=current"}, false},
	} {
		cmd := exec.Command("./programs.sh")
		cmd.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH"), "KUBECONFIG=/k", "HOME=/h"}, test.env...)
		output, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", name, err, output)
		}
		before, _, _ := strings.Cut(string(output), "==>")
		if got := strings.Contains(before, "kind-mine") && strings.Contains(before, "DEMO_CLUSTER=current KUBECONFIG=/k"); got != test.named {
			t.Errorf("%s: got %q before the first step", name, before)
		}
	}
}

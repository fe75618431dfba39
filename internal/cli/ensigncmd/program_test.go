package ensigncmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/cli"
)

func TestTheHelpNamesTheProgramAsItIsCalled(t *testing.T) {
	for path, want := range map[string]string{"/usr/bin/ensign": "ensign", "kubectl-ensign": "kubectl ensign", "bin/other": "other"} {
		for _, command := range []string{"status", "logs", "run-once", "check"} {
			root, out := New(cli.Build{}), &bytes.Buffer{}
			root.SetOut(out)
			if err := cli.Execute(t.Context(), root, path, []string{command, "--help"}); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), "\n  "+want+" "+command) {
				t.Errorf("%s: want %q in\n%s", path, want+" "+command, out.String())
			}
			for _, example := range []string{"\n  ensign ", "| ensign ", `"ensign `} {
				if want != "ensign" && strings.Contains(out.String(), example) {
					t.Errorf("%s: %q is in\n%s", path, example, out.String())
				}
			}
		}
	}
}

func TestKubectlCompletesItsPlugin(t *testing.T) {
	root, out := New(cli.Build{}), &bytes.Buffer{}
	root.SetOut(out)
	root.SetErr(&bytes.Buffer{})
	if err := cli.Execute(t.Context(), root, "/usr/bin/kubectl_complete-ensign", []string{"st"}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "status\t") {
		t.Errorf("got %q", out.String())
	}
}

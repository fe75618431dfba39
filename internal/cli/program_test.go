package cli

import (
	"bytes"
	"strings"
	"testing"
)

func TestTheHelpNamesTheProgramAsItIsCalled(t *testing.T) {
	for path, want := range map[string]string{"/usr/bin/ensign": "ensign", "kubectl-ensign": "kubectl ensign", "bin/manager": "manager"} {
		for _, command := range []string{"status", "logs", "run-once", "run"} {
			root, out := newRootCommand(Build{}), &bytes.Buffer{}
			rename(root, path)
			root.SetOut(out)
			root.SetArgs([]string{command, "--help"})
			if err := root.Execute(); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), "\n  "+want+" "+command) {
				t.Errorf("%s: want %q in\n%s", path, want+" "+command, out.String())
			}
			for _, example := range []string{"\n  manager ", "| manager ", `"manager `} {
				if want != "manager" && strings.Contains(out.String(), example) {
					t.Errorf("%s: %q is in\n%s", path, example, out.String())
				}
			}
		}
	}
}

func TestKubectlCompletesItsPlugin(t *testing.T) {
	args := asCalled("/usr/bin/kubectl_complete-ensign", []string{"st"})
	root, out := newRootCommand(Build{}), &bytes.Buffer{}
	rename(root, "/usr/bin/kubectl_complete-ensign")
	root.SetOut(out)
	root.SetErr(&bytes.Buffer{})
	root.SetArgs(args)
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "status\t") {
		t.Errorf("got %q", out.String())
	}
}

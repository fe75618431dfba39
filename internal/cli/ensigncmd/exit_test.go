package ensigncmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/cli"
)

// TestAFaultyFlagOrArgumentIsNoAnswer: where exit code 1 answers what was asked for, a call that
// could not be understood ends with 2.
func TestAFaultyFlagOrArgumentIsNoAnswer(t *testing.T) {
	asked := 0
	for _, command := range New(cli.Build{}).Commands() {
		_, codes, _ := strings.Cut(command.Long, "Exit codes: ")
		if !strings.Contains(codes, "2") {
			continue
		}
		asked++
		for _, args := range [][]string{{"--no-such-flag"}, {"--kubeconfig=/nowhere", "a/b/c", "d/e/f", "g/h/i"}} {
			root := New(cli.Build{})
			root.SetOut(&bytes.Buffer{})
			root.SetErr(&bytes.Buffer{})
			root.SetArgs(append([]string{command.Name()}, args...))
			if code := cli.ExitCode(root.Execute()); code != 2 {
				t.Errorf("%s %q: got exit code %d, want 2", command.Name(), args, code)
			}
		}
	}
	for _, args := range [][]string{{"init", "--nosuch"}, {"create", "api", "--nosuch"}, {"schema", "--nosuch"}, {"check", "--nosuch"}, {"rbac", "--nosuch"}, {"status", "--nosuch"}} {
		root := New(cli.Build{})
		root.SetArgs(args)
		err := root.Execute()
		want := `unknown flag: --nosuch; "ensign ` + strings.Join(args[:len(args)-1], " ") + ` --help" lists the flags`
		if cli.ExitCode(err) != 2 || err.Error() != want {
			t.Errorf("%q: got exit code %d, %v, want 2, %s", args, cli.ExitCode(err), err, want)
		}
	}
	for name, nearest := range map[string]string{"statsu": "\tstatus\n", "nosuch": ""} {
		var out bytes.Buffer
		root := New(cli.Build{})
		root.SetOut(&out)
		root.SetErr(&out)
		if err := cli.Execute(t.Context(), root, "ensign", []string{name}); cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), nearest) || out.Len() > 0 {
			t.Errorf("%s: got exit code %d, %v, and printed\n%s", name, cli.ExitCode(err), err, out.String())
		}
	}
	for _, args := range [][]string{{"create"}, {"create", "nosuch"}} {
		root := New(cli.Build{})
		root.SetArgs(args)
		if err := root.Execute(); cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), "there is: create api") && !strings.Contains(err.Error(), "There is: create api") {
			t.Errorf("%q: got exit code %d, %v", args, cli.ExitCode(err), err)
		}
	}
	if asked < 7 {
		t.Errorf("only %d commands say so", asked)
	}
}

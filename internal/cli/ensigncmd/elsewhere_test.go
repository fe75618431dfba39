package ensigncmd

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ensign-operator/ensign/internal/cli"
	"github.com/ensign-operator/ensign/internal/cli/managercmd"
)

func names(root *cobra.Command, hidden bool) (names []string) {
	for _, command := range root.Commands() {
		if command.Hidden == hidden {
			names = append(names, command.Name())
		}
	}
	return names
}

// TestEachProgramSaysWhereACommandWent: whoever calls a command of the other program, with its
// flags, learns how it is called there.
func TestEachProgramSaysWhereACommandWent(t *testing.T) {
	build := cli.Build{}
	for name, test := range map[string]struct {
		here, there *cobra.Command
		says        string
	}{
		"manager": {managercmd.New(build), New(build), `is a command of the program ensign: call "ensign `},
		"ensign":  {New(build), managercmd.New(build), `is a command of the program manager: call "manager `},
	} {
		own, others := names(test.here, false), names(test.there, false)
		missing := slices.DeleteFunc(others, func(name string) bool { return slices.Contains(own, name) })
		if got := names(test.here, true); !slices.Equal(got, missing) || len(got) == 0 {
			t.Errorf("%s: says where %q are, and does not have %q", name, got, missing)
		}
		for _, command := range missing {
			for _, args := range [][]string{{command}, {command, "x", "--some-flag"}, {command, "--help"}} {
				err := cli.Execute(t.Context(), test.here, name, args)
				if cli.ExitCode(err) != 2 || !strings.HasPrefix(err.Error(), command+" "+test.says+command+`"`) {
					t.Errorf("%s %q: got exit code %d, %v", name, args, cli.ExitCode(err), err)
				}
			}
		}
		var help bytes.Buffer
		test.here.SetOut(&help)
		if err := cli.Execute(t.Context(), test.here, name, []string{"--help"}); err != nil {
			t.Fatal(err)
		}
		for _, command := range missing {
			if strings.Contains(help.String(), "\n  "+command+" ") {
				t.Errorf("%s --help shows %s:\n%s", name, command, help.String())
			}
		}
	}
}

package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// AddElsewhere adds commands that another program has: called here, by habit or from a script,
// they only say how they are called there, with exit code 2. The help and completion do not show
// them. calls are the ways to call the other program, its name first.
func AddElsewhere(root *cobra.Command, calls []string, names ...string) {
	for _, name := range names {
		ways := make([]string, len(calls))
		for i, call := range calls {
			ways[i] = fmt.Sprintf("%q", call+" "+name)
		}
		says := fmt.Sprintf("%s is a command of the program %s: call %s", name, calls[0], strings.Join(ways, " or "))
		root.AddCommand(&cobra.Command{
			Use: name, Long: says, Hidden: true, DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error { return ExitWith(2, fmt.Errorf("%s", says)) },
		})
	}
}

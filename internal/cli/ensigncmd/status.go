package ensigncmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/author/fleet"
	"github.com/ensign-operator/ensign/internal/author/kinds"
	"github.com/ensign-operator/ensign/internal/cli"
	"github.com/ensign-operator/ensign/internal/sanitize"
)

// statusFlags are the flags of "status".
type statusFlags struct {
	fleetFlags

	group  string
	output string
	follow bool
	// notReady leaves out ready resources.
	notReady bool
}

func newStatusCommand() *cobra.Command {
	f := &statusFlags{fleetFlags: fleetFlags{run: cli.NewFlags()}}
	cmd := &cobra.Command{
		Use:   "status [KIND | KIND/NAME]...",
		Short: "Show the outcome of each resource",
		Long: `status shows the custom resources of the watched kinds with their outcome, when
content ran last and when it runs next, and the message of what failed.

Without arguments it shows all kinds of watches.yaml. Where there is no such
file, name the kinds, or their API group by --group.
` + kindsHelp + `

READY is the condition Ready, which other tools read, too. GENERATION is 2/3 where the resource has generation 3 and its status is about 2.
NEXT is the time of the next try after a failure, and after a success the end of
the period, which is unknown without watches.yaml unless the resource has one of its
own. Give the manager's --reconcile-period if it has one. SLOWED is yes for a resource
that is triggered too often. With -o wide, VERSION says which version of the content
ran last; the lines after the table say for how many resources each of them did.
It takes the right to list the kinds, and changes nothing.

Exit codes: 0; 1 the last run of a resource failed; 2 status could not look.`,
		Example: `  # In the directory of the operator's watches.yaml:
  ensign status

  # Without it, and again for each change:
  ensign status --group demo.example.com --watch

  # In a script:
  ensign status greeting/hello -n shop -o json | jq -r .items[0].outcome`,
		RunE: func(cmd *cobra.Command, args []string) error { return cli.AsUnable(f.execute(cmd, args)) },
	}
	f.register(cmd, "`namespace` to look in; default those of WATCH_NAMESPACE, or all")
	set := cmd.Flags()
	set.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "look in all namespaces, whatever WATCH_NAMESPACE says")
	set.StringVar(&f.group, "group", "", "show the kinds of this API `group`")
	set.BoolVarP(&f.follow, "watch", "w", false, "then show each change; Ctrl-C ends")
	set.BoolVar(&f.notReady, "not-ready", false, "show only resources whose condition Ready is not True")
	set.StringVarP(&f.output, "output", "o", "", "`format`: wide, json or yaml")
	set.AddFlag(f.run.Lookup("reconcile-period"))
	cmd.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
	cmd.ValidArgsFunction = f.completion(true)
	return cmd
}

func (f *statusFlags) execute(cmd *cobra.Command, args []string) error {
	if err := f.check(args); err != nil {
		return err
	}
	view, err := f.view(args)
	if err != nil {
		return err
	}
	rows, failed := f.look(cmd, args, view)
	if f.structured() {
		return errors.Join(write(cmd.OutOrStdout(), f.output, rows), exitOf(failed, rows))
	}
	table := fleet.NewTable(cmd.OutOrStdout(), widthOf(cmd.OutOrStdout()), f.output == "wide")
	if len(rows) == 0 && !failed && !f.follow {
		fmt.Fprintln(cmd.ErrOrStderr(), "there are no such resources"+view.Place())
		return nil
	}
	err = table.Print(rows, time.Now())
	if summary := fleet.Summary(fleet.Versions(rows)); summary != "" && !f.follow && err == nil {
		_, err = fmt.Fprint(cmd.OutOrStdout(), "\n", summary)
	}
	if err != nil || !f.follow || failed {
		return errors.Join(err, exitOf(failed, rows))
	}
	view.Follow(cmd.Context(), rows, func(row fleet.Row) {
		err = cmp.Or(err, table.Print([]fleet.Row{row}, time.Now()))
	})
	return err
}

// look returns the rows to show first, and says what is left out. failed is true if something could not
// be looked at.
func (f *statusFlags) look(cmd *cobra.Command, args []string, view fleet.View) (rows []fleet.Row, failed bool) {
	rows, errs := view.Look(cmd.Context())
	failed = f.report(cmd, errs)
	if len(args) == 0 && f.group == "" && projectInGo() {
		fmt.Fprintln(cmd.ErrOrStderr(), "note: kinds that the program of this project watches in Go are left out: name them, or give --group")
	}
	if f.notReady {
		rows = slices.DeleteFunc(rows, func(r fleet.Row) bool { return r.Ready == "True" })
	}
	return rows, failed
}

// projectInGo reports whether the working directory has a project of "init --go".
func projectInGo() bool {
	text, err := os.ReadFile("PROJECT")
	return err == nil && strings.Contains("\n"+string(text), "\nrepo: ")
}

func (f *statusFlags) structured() bool { return f.output == "json" || f.output == "yaml" }

func (f *statusFlags) check(args []string) error {
	switch {
	case !slices.Contains([]string{"", "wide", "json", "yaml"}, f.output):
		return fmt.Errorf("--output=%s: allowed are wide, json and yaml", f.output)
	case f.notReady && f.follow:
		return errors.New("--not-ready and --watch: give one of them")
	case f.structured() && f.follow:
		return fmt.Errorf("--output=%s and --watch: give one of them", f.output)
	case f.group != "" && len(args) > 0:
		return errors.New("--group and arguments: give one of them")
	}
	return nil
}

// view returns the view for the flags and arguments.
func (f *statusFlags) view(args []string) (fleet.View, error) {
	o, list, err := f.settings()
	if err == nil && len(args) == 0 && f.group == "" { // A user who names nothing need not have a cluster to learn it.
		_, err = (&kinds.Finder{Watches: list}).All("")
	}
	if err != nil {
		return fleet.View{}, err
	}
	c, err := connectWith(o, list)
	if err != nil {
		return fleet.View{}, err
	}
	view := fleet.View{Client: c.watching, Period: max(c.options.ReconcilePeriod, 0)}
	switch {
	case f.namespace != "":
		view.Namespaces = []string{f.namespace}
	case !f.allNamespaces:
		view.Namespaces = c.options.Env.Namespaces()
	}
	view.Targets, err = c.targets(args, f.group)
	return view, err
}

// report says what could not be looked at, and reports whether that is a failure: a kind that
// the cluster does not serve has no resources.
func (f *statusFlags) report(cmd *cobra.Command, errs []error) (failed bool) {
	for _, err := range errs {
		prefix := "error:"
		if errors.Is(err, fleet.ErrNotServed) {
			prefix = "note:"
		} else {
			failed = true
		}
		fmt.Fprintln(cmd.ErrOrStderr(), prefix, sanitize.Text(err.Error()))
	}
	return failed
}

func exitOf(failed bool, rows []fleet.Row) error {
	switch {
	case failed:
		return cli.ExitWith(2, nil)
	case slices.ContainsFunc(rows, func(r fleet.Row) bool { return r.Failed }):
		return cli.ExitWith(1, nil)
	}
	return nil
}

func write(out io.Writer, format string, rows []fleet.Row) error {
	if rows == nil {
		rows = []fleet.Row{}
	}
	list := map[string]any{"items": rows, "versions": fleet.Versions(rows)}
	data, err := json.MarshalIndent(list, "", "  ")
	if format == "yaml" {
		data, err = yaml.Marshal(list)
	} else {
		data = append(data, '\n')
	}
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}

// widthOf returns the width of a terminal in characters; 0 for anything else.
func widthOf(out io.Writer) int {
	file, ok := out.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

package ensigncmd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ensign-operator/ensign/internal/author/check"
	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/internal/cli"
	"github.com/ensign-operator/ensign/internal/config"
)

// rbacFlags are the flags of "rbac".
type rbacFlags struct {
	project                     projectFlags
	name, fromAudit, user, diff string
	write, prune                bool
}

func newRBACCommand() *cobra.Command {
	f := &rbacFlags{}
	cmd := &cobra.Command{
		Use:   "rbac [DIR]",
		Short: "Print or write the roles that the manager needs for its content",
		Long: `rbac prints the roles with the rights that the manager needs for the project in DIR,
by default the working directory. It reads the tasks of roles and playbooks, and
charts, and adds the rights for the manager's own work. A comment at each rule says
where it comes from. rbac prints rights that only a run shows on standard error.
It leaves out roles for metrics and leader election that config/rbac has.

With --write it adds missing rights to the roles in DIR/config/rbac, and removes
rights that it or create api wrote there and no task needs any more. All other rules
and comments stay. --prune also removes unneeded rights from other rules,
unless a comment above the rule begins with "keep", as in "# keep: for kubectl".

With --from-audit the rights are those that an account has used, as an API server's
audit log says in JSON lines. --write then takes nothing away.

Exit codes: 0; 1, --diff has found a difference; 2, the project, the log or the
roles could not be read or written.`,
		Example: `  # The roles, to be reviewed:
  ensign rbac

  # Bring config/rbac up to date:
  ensign rbac --write

  # What config/rbac lacks (+), and what it gives without a need (-):
  ensign rbac --diff

  # What was really asked, compared with it:
  ensign rbac --from-audit audit.log --user system:serviceaccount:my-system:my-manager --diff config/rbac`,
		Args: atMostOneDir,
		RunE: func(cmd *cobra.Command, args []string) error { return cli.AsUnable(f.run(cmd, args)) },
	}
	f.project.register(cmd)
	cmd.Flags().StringVar(&f.name, "name", "", "`name` of the manager's role; default that in config/rbac, else manager")
	cmd.Flags().BoolVar(&f.write, "write", false, "change the roles in config/rbac instead of printing them")
	cmd.Flags().BoolVar(&f.prune, "prune", false, "with --write: take away what is not needed, also from rules that were written by hand")
	cmd.Flags().StringVar(&f.fromAudit, "from-audit", "", "audit log, a `file` of JSON lines; - is standard input")
	cmd.Flags().StringVar(&f.user, "user", "", "`name` of the account in the audit log; all service accounts outside of kube-system if not given")
	cmd.Flags().StringVar(&f.diff, "diff", "", "`file` or directory with roles to compare with, at the end by default config/rbac; prints the differences instead of roles")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		args := cmd.Flags().Args()
		if !strings.Contains(err.Error(), "needs an argument: --diff") || len(args) > 1 {
			return cli.UsageError(cmd, err)
		}
		f.diff = filepath.Join(filepath.Join(args...), "config", "rbac")
		return cli.AsUnable(f.run(cmd, args))
	})
	return cmd
}

func (f *rbacFlags) run(cmd *cobra.Command, args []string) error {
	switch {
	case f.prune && !f.write:
		return errors.New("--prune is for --write: add it")
	case f.prune && f.fromAudit != "":
		return errors.New("--prune: leave it out with --from-audit, because an audit log does not show which rights are not needed")
	case f.write && f.diff != "":
		return errors.New("--write, --diff: give one of them; --diff shows what --write would change")
	}
	options, err := f.project.options(args)
	if err != nil {
		return err
	}
	needs, err := f.needs(cmd, options)
	if err != nil {
		return err
	}
	for _, unknown := range needs.Unknown {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", unknown.Position, unknown.Message)
	}
	switch dir := filepath.Join(options.Dir, "config", "rbac"); {
	case f.write:
		return f.update(cmd, needs, options.Dir, dir)
	case f.diff != "":
		return difference(cmd, needs, f.diff)
	default:
		return f.print(cmd, needs, dir)
	}
}

func difference(cmd *cobra.Command, needs rights.Needs, path string) error {
	granted, err := rights.ReadGranted(path)
	if err != nil {
		return fmt.Errorf("read the roles of --diff: %w", err)
	}
	lines := needs.Difference(granted)
	if len(lines) == 0 {
		return nil
	}
	fmt.Fprintln(cmd.OutOrStdout(), strings.Join(lines, "\n"))
	return cli.ExitWith(1, nil)
}

// print prints the roles. Where the project has roles for metrics and leader election, kustomize
// would refuse them a second time.
func (f *rbacFlags) print(cmd *cobra.Command, needs rights.Needs, dir string) error {
	has := map[rights.Scope]string{}
	var granted rights.Granted
	if project, err := rights.ReadProject(dir, f.name); err == nil { // Roles are printed where none can be read, too.
		has, granted, f.name = project.Has, project.Granted, project.Name
	}
	for _, scope := range []rights.Scope{rights.Metrics, rights.Lease} {
		if file := has[scope]; file != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "not printed: the role for %s, which %s defines already\n", map[rights.Scope]string{rights.Metrics: "metrics", rights.Lease: "leader election"}[scope], f.shown(file))
			for _, line := range needs.In(scope).Lacking(granted) {
				fmt.Fprintf(cmd.ErrOrStderr(), "it lacks a right, which rbac --write adds: %s\n", strings.TrimPrefix(line, "+ "))
			}
		}
	}
	return needs.Write(cmd.OutOrStdout(), cmp.Or(f.name, "manager"), has)
}

// update brings the roles in a directory of the project up to date.
func (f *rbacFlags) update(cmd *cobra.Command, needs rights.Needs, root, dir string) error {
	project, err := rights.ReadProject(dir, f.name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--write: the project has no directory config/rbac; leave --write out to print the roles: %w", err)
	}
	if err != nil {
		return fmt.Errorf("read config/rbac: %w", err)
	}
	notes, err := project.Update(needs, f.prune, f.fromAudit != "")
	if err != nil {
		return fmt.Errorf("config/rbac: %w", err)
	}
	files, err := project.Save(root)
	if err != nil {
		return fmt.Errorf("write config/rbac: %w", err)
	}
	after, err := rights.ReadGranted(dir)
	if err != nil {
		return fmt.Errorf("read config/rbac again: %w", err)
	}
	left := needs.Difference(after)
	for _, line := range needs.Difference(project.Granted) {
		if !slices.ContainsFunc(left, func(other string) bool { return right(other) == right(line) }) {
			fmt.Fprintln(cmd.OutOrStdout(), f.shown(line))
		}
	}
	for _, file := range files {
		fmt.Fprintln(cmd.ErrOrStderr(), "edit  ", f.shown(file))
	}
	if len(files) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "config/rbac is up to date")
	}
	for _, note := range notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "note:", note)
	}
	f.explain(cmd, left)
	return nil
}

// explain says what is given, not needed, and was written by hand.
func (f *rbacFlags) explain(cmd *cobra.Command, left []string) {
	surplus := slices.DeleteFunc(left, func(line string) bool { return !strings.HasPrefix(line, "- ") })
	if len(surplus) == 0 || f.fromAudit != "" {
		return
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "note: no task is known to need these, and they were written by hand: --prune takes them away, and a comment \"# keep: WHY\" above the rule keeps them")
	for _, line := range surplus {
		fmt.Fprintln(cmd.ErrOrStderr(), f.shown(line))
	}
}

// right returns the line of a difference without its reason.
func right(line string) string {
	line, _, _ = strings.Cut(line, "  # ")
	return line
}

// shown returns a text with the paths below the working directory relative to it.
func (f *rbacFlags) shown(text string) string {
	if dir, err := os.Getwd(); err == nil {
		return strings.ReplaceAll(text, dir+string(filepath.Separator), "")
	}
	return text
}

func (f *rbacFlags) needs(cmd *cobra.Command, options config.Options) (rights.Needs, error) {
	if f.fromAudit != "" {
		log, err := openInput(cmd, f.fromAudit)
		if err != nil {
			return rights.Needs{}, fmt.Errorf("--from-audit: %w", err)
		}
		defer func() { _ = log.Close() }() // It was only read.
		needs, err := rights.FromAudit(log, f.user)
		switch {
		case err != nil:
			return needs, fmt.Errorf("--from-audit %s: %w", f.fromAudit, err)
		case len(needs.All) == 0:
			return needs, fmt.Errorf("--from-audit %s: the log has no request of such an account; --user names another", f.fromAudit)
		}
		return needs, nil
	}
	project, err := check.Load(cmd.Context(), options)
	if err != nil {
		return rights.Needs{}, err
	}
	return project.Needs(), project.WatchFaults()
}

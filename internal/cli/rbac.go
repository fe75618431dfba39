package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ensign-operator/ensign/internal/author/check"
	"github.com/ensign-operator/ensign/internal/author/rights"
)

// rbacFlags are the flags of "rbac".
type rbacFlags struct {
	project                     projectFlags
	name, fromAudit, user, diff string
}

func newRBACCommand() *cobra.Command {
	f := &rbacFlags{}
	cmd := &cobra.Command{
		Use:   "rbac [DIR]",
		Short: "Print the roles that the manager needs for its content",
		Long: `rbac prints ClusterRoles and a Role with the rights that the manager needs for the
project in DIR, the working directory if it is not given: for its own work and, by
reading them, for the tasks of roles and playbooks and what charts render. A comment at each rule says
where it comes from. What can't be told without a run stands on standard error.

With --from-audit the rights are those that an account has used, as an API server's
audit log says in JSON lines.

Exit codes: 0; 1, --diff has found a difference; 2, the project, the log or the
roles could not be read.`,
		Example: `  # The roles, to be reviewed:
  manager rbac > role.yaml

  # What config/rbac lacks (+), and what it gives without a need (-):
  manager rbac --diff config/rbac

  # What was really asked, compared with it:
  manager rbac --from-audit audit.log --user system:serviceaccount:my-system:my-manager --diff config/rbac`,
		Args: atMostOneDir, SilenceUsage: true, SilenceErrors: true,
		RunE: f.run,
	}
	f.project.register(cmd)
	cmd.Flags().StringVar(&f.name, "name", "manager", "`name` of the ClusterRole")
	cmd.Flags().StringVar(&f.fromAudit, "from-audit", "", "audit log, a `file` of JSON lines; - is standard input")
	cmd.Flags().StringVar(&f.user, "user", "", "`name` of the account in the audit log; all service accounts outside of kube-system if not given")
	cmd.Flags().StringVar(&f.diff, "diff", "", "`file` or directory with roles to compare with; prints the differences instead of roles")
	cmd.SetFlagErrorFunc(usageError)
	return cmd
}

func (f *rbacFlags) run(cmd *cobra.Command, args []string) error {
	needs, err := f.needs(cmd, args)
	if err != nil {
		return exitWith(2, err)
	}
	for _, unknown := range needs.Unknown {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", unknown.Position, unknown.Message)
	}
	if f.diff == "" {
		return needs.Write(cmd.OutOrStdout(), f.name)
	}
	granted, err := rights.ReadGranted(f.diff)
	if err != nil {
		return exitWith(2, fmt.Errorf("read the roles of --diff: %w", err))
	}
	lines := needs.Difference(granted)
	if len(lines) == 0 {
		return nil
	}
	fmt.Fprintln(cmd.OutOrStdout(), strings.Join(lines, "\n"))
	return exitWith(1, nil)
}

func (f *rbacFlags) needs(cmd *cobra.Command, args []string) (rights.Needs, error) {
	if f.fromAudit != "" {
		log := cmd.InOrStdin()
		if f.fromAudit != "-" {
			file, err := os.Open(f.fromAudit)
			if err != nil {
				return rights.Needs{}, fmt.Errorf("--from-audit: %w", err)
			}
			defer file.Close()
			log = file
		}
		needs, err := rights.FromAudit(log, f.user)
		switch {
		case err != nil:
			return needs, fmt.Errorf("--from-audit %s: %w", f.fromAudit, err)
		case len(needs.All) == 0:
			return needs, fmt.Errorf("--from-audit %s: the log has no request of such an account; --user names another", f.fromAudit)
		}
		return needs, nil
	}
	options, err := f.project.options(args)
	if err != nil {
		return rights.Needs{}, err
	}
	project, err := check.Load(cmd.Context(), options)
	if err != nil {
		return rights.Needs{}, err
	}
	return project.Needs(), project.WatchFaults()
}

package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// maxShown is how many objects NewCanUninstallCommand's command names.
const maxShown = 50

// NewCanUninstallCommand returns the command can-uninstall: a hook in the cluster calls it, and so
// do people before they remove the operator.
func NewCanUninstallCommand(build Build) *cobra.Command {
	flags := NewFlags()
	cmd := &cobra.Command{
		Use:   "can-uninstall",
		Short: "Fail while resources exist that only this operator can delete",
		Long: `can-uninstall lists the custom resources that have the finalizer of their watch, and
ends with exit code 1 if there are any: without the operator, nobody removes the
finalizer, and the deletion of such a resource never ends.

It looks in the namespaces of WATCH_NAMESPACE, and changes nothing. It takes the
arguments of "manager run", so that it can be called with those of a Deployment;
only --watches-file and --kubeconfig matter.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options := flags.Options
			options.Version, options.Commit = build.Version, build.Commit
			if err := Here(&options); err != nil {
				return err
			}
			left, err := held(cmd.Context(), options)
			if err != nil || len(left) == 0 {
				return err
			}
			for _, object := range left[:min(len(left), maxShown)] {
				fmt.Fprintln(cmd.OutOrStdout(), object)
			}
			if more := len(left) - maxShown; more > 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "and %d more\n", more)
			}
			return fmt.Errorf("%d of the custom resources need this operator for their deletion: delete them while it runs, then uninstall it. To uninstall anyway, skip this check (helm uninstall --no-hooks, or kubectl delete -k instead of make) and remove the finalizers yourself", len(left))
		},
	}
	flags.Register(cmd)
	return cmd
}

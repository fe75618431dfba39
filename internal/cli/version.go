package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// NewVersionCommand returns the command version.
func NewVersionCommand(build Build) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and the commit of this build",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s (commit %s)\n", cmd.Root().Name(), build.Version, build.Commit)
			return err
		},
	}
}

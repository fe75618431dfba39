package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ensign-operator/ensign/internal/observe/metrics"
)

// Build is the version and commit of the manager.
type Build = metrics.Build

// Execute runs the command that the arguments name. It returns when the command is done;
// the end of ctx stops it. The caller prints the error. program is the path by which this
// program was called.
func Execute(ctx context.Context, build Build, program string, args []string) error {
	root := newRootCommand(build)
	rename(root, program)
	root.SetArgs(asCalled(program, args))
	return root.ExecuteContext(ctx)
}

// Commands returns the program's commands, so that the tests of the documents know which there
// are. They are not to be executed.
func Commands() *cobra.Command {
	root := newRootCommand(Build{})
	root.InitDefaultCompletionCmd()
	return root
}

func newRootCommand(build Build) *cobra.Command {
	root := newRunCommand(build)
	root.Use = "manager"
	root.Long = `manager is the Ensign operator: it watches the kinds named in watches.yaml and
runs a role, playbook or Helm chart for each custom resource (below: resource). A
run is one execution of that content; a watch is one entry of watches.yaml.

Called without a command it does what "manager run" does.`
	root.AddCommand(newRunCommand(build), newInitCommand(), newCreateCommand(), newCheckCommand(build), newRBACCommand(), newSchemaCommand(),
		newRunOnceCommand(build), newCanUninstallCommand(build), newVersionCommand(build))
	root.AddCommand(newFleetCommands()...)
	return root
}

func newVersionCommand(build Build) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and the commit of this build",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "ensign %s (commit %s)\n", build.Version, build.Commit)
			return err
		},
	}
}

// Package ensigncmd is the command line of the program ensign, which people call, also as
// "kubectl ensign": to write an operator, to check it, and to control its resources in a cluster.
// The logic of each command is in a package below internal/author.
package ensigncmd

import (
	"github.com/spf13/cobra"

	"github.com/ensign-operator/ensign/internal/cli"
)

// New returns the commands.
func New(build cli.Build) *cobra.Command {
	root := &cobra.Command{
		Use:   "ensign",
		Short: "Write, check and control operators of Ansible content and Helm charts",
		Long: `ensign writes the project of an operator, checks it, and shows and controls the
custom resources (below: resources) of an operator in a cluster. The operator itself
is the program manager, which runs in a pod.`,
		SilenceUsage: true, SilenceErrors: true,
	}
	root.SetFlagErrorFunc(cli.UsageError)
	addGroup(root, "author", "To write an operator:",
		newInitCommand(), newCreateCommand(), newCheckCommand(build), newRBACCommand(), newSchemaCommand(), newBundleCommand(), newRunOnceCommand(build), newDiffCommand(build))
	addGroup(root, "fleet", "To show and control its resources:",
		newStatusCommand(), newLogsCommand(), newControlCommand(reconcileText), newControlCommand(suspendText), newControlCommand(resumeText), newControlCommand(cancelText), newUninstallCommand(),
		cli.NewCanUninstallCommand(build))
	root.AddCommand(cli.NewVersionCommand(build))
	root.InitDefaultCompletionCmd()
	cli.AddElsewhere(root, []string{"manager"}, "run", "run-agent")
	return root
}

// addGroup adds commands below a title of their own in the help.
func addGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, command := range commands {
		command.GroupID = id
	}
	root.AddCommand(commands...)
}

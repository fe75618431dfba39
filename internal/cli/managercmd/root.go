// Package managercmd is the command line of the program manager, which runs in a pod. It has few
// commands, so that the image has only the parts that a manager needs: package ensigncmd has those
// that people call.
package managercmd

import (
	"github.com/spf13/cobra"

	"github.com/ensign-operator/ensign/internal/cli"
)

// New returns the commands. Called without one, the program does the same as run.
func New(build cli.Build) *cobra.Command {
	root := newRunCommand(build)
	root.Use, root.Args = "manager", nil // Another word is an unknown command.
	root.Long = `manager is the Ensign operator: it watches the kinds named in watches.yaml and
runs a role, playbook or Helm chart for each custom resource (below: resource). A
run is one execution of that content; a watch is one entry of watches.yaml.

Called without a command it does what "manager run" does. The program ensign has the
commands that write and check an operator, and show and control its resources.`
	root.AddCommand(newRunCommand(build), newAgentCommand(), cli.NewCanUninstallCommand(build), cli.NewVersionCommand(build))
	root.CompletionOptions.DisableDefaultCmd = true
	cli.AddElsewhere(root, []string{"ensign", "kubectl ensign"}, "init", "create", "check", "rbac", "schema", "bundle", "run-once", "diff",
		"status", "logs", "reconcile", "suspend", "resume", "cancel", "uninstall", "completion")
	return root
}

package managercmd

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/ensign-operator/ensign/internal/cli"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/operator"
)

func newRunCommand(build cli.Build) *cobra.Command {
	flags := cli.NewFlags()
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Watch the kinds of watches.yaml and run their content",
		Long: `run watches the kinds named in watches.yaml, turns the spec of each custom
resource into variables or values, runs the role or playbook of its watch through
ansible-runner, or has its chart's release installed, upgraded or repaired, and
writes what came out into the resource's status.

It ends with exit code 0 after SIGTERM or Ctrl-C, when all runs have ended and
their statuses are written, and with 1 when something is wrong at the start
(nothing has been changed then) or when its leader lease is lost.`,
		Example: `  # In a directory with watches.yaml, roles/ and playbooks/, against the cluster of KUBECONFIG:
  manager run

  # Every task's output, one JSON object a line, without metrics:
  manager run --ansible-log-events=Everything --log-format=json --metrics-bind-address=0`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := os.Getwd()
			if err != nil {
				return fmt.Errorf("find the working directory: %w", err)
			}
			options, err := flags.Complete(cmd.ErrOrStderr())
			options.Build, options.Env, options.Dir = build, config.NewEnvironment(os.Environ()), dir
			if err := errors.Join(err, options.Check()); err != nil {
				return err
			}
			if options.Executable, err = os.Executable(); err != nil {
				return fmt.Errorf("find the path of the manager's program: %w", err)
			}
			return operator.Run(cmd.Context(), options)
		},
	}
	flags.Register(cmd)
	return cmd
}

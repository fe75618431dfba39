package managercmd

import (
	"github.com/spf13/cobra"

	"github.com/ensign-operator/ensign/internal/cli"
	"github.com/ensign-operator/ensign/pkg/ensign"
)

// newAgentCommand returns the command of the pods of Jobs.
func newAgentCommand() *cobra.Command {
	return &cobra.Command{
		Use:   ensign.AgentCommand,
		Short: "Execute one run in the pod of a Job",
		Long: `run-agent executes one run in the pod of a Job, for a watch with "executor: job".
The manager writes this command into the pods that it makes. It is not for people.

It asks the managers named in ENSIGN_RUN_ADDRESS for its run, with the pod's
token, and sends them the run's job events and its result. It ends with exit code
0 when the result has been handed over, whatever the run came to.`,
		Args: cli.OrUnable(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := cli.NewFlags().Complete(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return ensign.RunAgent(cmd.Context(), o.Logger)
		},
	}
}

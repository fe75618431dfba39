package ensign

import (
	"context"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/operator"
)

// AgentCommand is the argument with which a manager starts its program again in the pods of Jobs, for
// watches with executor: job. A program that has such watches does nothing then but call RunAgent:
//
//	if len(os.Args) == 2 && os.Args[1] == ensign.AgentCommand {
//		return ensign.RunAgent(ctrl.SetupSignalHandler(), log)
//	}
const AgentCommand = operator.AgentCommand

// RunAgent executes the run of the Job whose pod the program is in, and hands its result over to the
// manager. It returns nil when that is done, whatever the run came to. ctx ends with SIGTERM.
func RunAgent(ctx context.Context, log logr.Logger) error { return operator.RunAgent(ctx, log) }

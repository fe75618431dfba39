package ensign

import (
	"context"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/operator"
	"github.com/ensign-operator/ensign/pkg/content"
)

// AgentCommand is the argument with which a manager starts its program again in the pods of Jobs, for
// watches with executor: job. A program that has such watches does nothing then but call RunAgent:
//
//	if len(os.Args) == 2 && os.Args[1] == ensign.AgentCommand {
//		return ensign.RunAgent(ctrl.SetupSignalHandler(), log, menus)
//	}
const AgentCommand = operator.AgentCommand

// RunAgent executes the run of the Job whose pod the program is in, and hands its result over to the
// manager. It returns nil when that is done, whatever the run came to. ctx ends with SIGTERM. watches are those
// of the program's own kinds of content that run in Jobs. The pod reaches the API server by the kubeconfig of the
// run alone, so that their engines are made without it.
func RunAgent(ctx context.Context, log logr.Logger, watches ...Custom) error {
	engines := map[Kind]content.Engine{}
	for _, w := range watches {
		engines[w.Kind] = w.Engine
	}
	return operator.RunAgent(ctx, log, engines)
}

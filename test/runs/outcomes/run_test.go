package outcomes

import (
	"context"
	"encoding/gob"
	"os"
	"os/exec"
	"testing"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/process/proctree"
	"github.com/ensign-operator/ensign/internal/process/rundir"
	"github.com/ensign-operator/ensign/test/runs/bench"
)

// order is what a process of its own is asked to run, by its standard input. A Runner collects the processes that its runs leave behind, among them
// those of another Runner in the same process; so each run gets a process.
type order struct {
	Root            string
	Binary, Python  string
	Env             []string
	Inventory, Args string
	SkipFacts       bool
	Spec            runner.Spec
}

// orderVariable makes the test binary run an order instead of the tests.
const orderVariable = "ENSIGN_OUTCOMES_ORDER"

func TestMain(m *testing.M) {
	if os.Getenv(orderVariable) == "" {
		os.Exit(m.Run())
	}
	if err := fulfil(); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

// fulfil runs the order and writes its result to the standard output.
func fulfil() error {
	var o order
	if err := gob.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return err
	}
	root, err := rundir.Open(o.Root)
	if err != nil {
		return err
	}
	r := &runner.Runner{Root: root, Launcher: withoutServer{}, Binary: o.Binary, Python: o.Python, Env: o.Env, Inventory: o.Inventory, Args: o.Args, SkipFacts: o.SkipFacts}
	result := bench.Execute(context.Background(), r, o.Spec, func(jobevent.Event) {})
	return gob.NewEncoder(os.Stdout).Encode(result)
}

// withoutServer lets runs be as they are where they may be warm, which is a manager's
// default: with pipelining.
type withoutServer struct{}

// Prepare implements runner.Launcher.
func (withoutServer) Prepare([]string) {}

// Start implements runner.Launcher.
func (withoutServer) Start(*exec.Cmd) (leader proctree.Leader, why string) {
	return proctree.Leader{}, "there is none"
}

// Command manager is the Ensign operator.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/ensign-operator/ensign/internal/cli"
)

// Set by the linker.
var (
	version = "dev"
	commit  = "unknown"
)

func main() { os.Exit(run()) }

// run returns the exit code.
func run() int {
	// Further signals change nothing: a manager that died of them would leave its
	// runs behind, which have sessions of their own.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := cli.Execute(ctx, cli.Build{Version: version, Commit: commit}, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		return 1
	}
	return 0
}

// Command manager is the Ensign operator. Package cli has its commands and flags.
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
	// A second signal must not kill the manager: its runs have sessions of their own and
	// would go on without it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := cli.Execute(ctx, cli.Build{Version: version, Commit: commit}, os.Args[0], os.Args[1:])
	if err != nil && err.Error() != "" {
		fmt.Fprintln(os.Stderr, cli.ProgramName(os.Args[0])+":", err)
	}
	return cli.ExitCode(err)
}

package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ensign-operator/ensign/internal/observe/metrics"
)

// Build is the version and commit of a program.
type Build = metrics.Build

// Main runs the command that the program's arguments name, prints its error and returns the exit
// code. SIGTERM and Ctrl-C end the command's context.
func Main(root *cobra.Command) int {
	// A second signal must not kill the manager: its runs have sessions of their own and
	// would go on without it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := Execute(ctx, root, os.Args[0], os.Args[1:])
	if err != nil && err.Error() != "" {
		fmt.Fprintln(os.Stderr, programName(os.Args[0])+":", err)
	}
	return ExitCode(err)
}

// Execute runs the command that the arguments name. path is the one by which the program was
// called. A command that is not there is misuse, and its error names those that are similar.
// An error about a setting names its flag.
func Execute(ctx context.Context, root *cobra.Command, path string, args []string) error {
	rename(root, path)
	args = asCalled(path, args)
	root.SetArgs(args)
	err := WithFlagNames(root.ExecuteContext(ctx))
	if _, _, unknown := root.Find(args); unknown != nil {
		return ExitWith(2, unknown)
	}
	return err
}

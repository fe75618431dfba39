package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// exitError is an error with an exit code. It may have no text: the command has said all.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// ExitWith gives an error the exit code with which the program ends. The error may be nil.
func ExitWith(code int, err error) error { return &exitError{code, err} }

// AsUnable gives the error, if it is one, the exit code of a command that could not do its
// work, unless it has another.
func AsUnable(err error) error {
	if _, has := errors.AsType[*exitError](err); err == nil || has {
		return err
	}
	return ExitWith(2, err)
}

// OrUnable gives the error of a check of arguments that exit code, too.
func OrUnable(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return AsUnable(check(cmd, args)) }
}

// UsageError returns the error for a wrong flag, with the exit code of a command that could not do its work.
func UsageError(cmd *cobra.Command, err error) error {
	return ExitWith(2, fmt.Errorf("%w; %q lists the flags", err, cmd.CommandPath()+" --help"))
}

// ExitCode returns the exit code for an error of Execute.
func ExitCode(err error) int {
	if exit, ok := errors.AsType[*exitError](err); ok {
		return exit.code
	}
	if err != nil {
		return 1
	}
	return 0
}

package cli

import (
	"errors"

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

func exitWith(code int, err error) error { return &exitError{code, err} }

// asUnable gives the error, if it is one, the exit code of a command that could not do its
// work, unless it has another.
func asUnable(err error) error {
	if _, has := errors.AsType[*exitError](err); err == nil || has {
		return err
	}
	return exitWith(2, err)
}

// orUnable gives the error of a check of arguments that exit code, too.
func orUnable(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return asUnable(check(cmd, args)) }
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

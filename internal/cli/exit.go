package cli

import "errors"

// exitError ends the program with another exit code than 1.
type exitError struct {
	code int
	// said is true if the command has told the reader already.
	said bool
	err  error
}

func (e *exitError) Error() string {
	if e.said || e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// withExitCode gives the error, if it is one, an exit code unless it has one.
func withExitCode(code int, err error) error {
	if _, has := errors.AsType[*exitError](err); err == nil || has {
		return err
	}
	return &exitError{code: code, err: err}
}

// ExitCode returns the exit code for what Execute returned. The error of a command that has
// told the reader already has no text.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if exit, ok := errors.AsType[*exitError](err); ok {
		return exit.code
	}
	return 1
}

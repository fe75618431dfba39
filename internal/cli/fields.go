package cli

import (
	"cmp"
	"errors"
	"strings"
	"syscall"

	"github.com/iancoleman/strcase"

	"github.com/ensign-operator/ensign/internal/operator"
	"github.com/ensign-operator/ensign/pkg/options"
)

// flagsOf has the flags of fields that are named otherwise.
var flagsOf = map[string]string{ //nolint:gochecknoglobals // A constant that Go cannot write as one.
	"ctrl.Options.LeaseDuration": "leader-elect-lease-duration",
	"ctrl.Options.RenewDeadline": "leader-elect-renew-deadline",
	"TaskEvents":                 "ansible-log-events",
}

// WithFlagNames returns the error with the flags in place of the fields of options that it names.
func WithFlagNames(err error) error {
	if err == nil {
		return nil
	}
	text, fields := err.Error(), fieldErrors(err)
	for _, one := range fields {
		text = strings.ReplaceAll(text, one.Error(), one.Named(flagOf(one.Field)))
	}
	for field, flag := range flagsOf { // A message may name another one.
		if strings.HasPrefix(field, "ctrl.Options.") {
			text = strings.ReplaceAll(text, field, "--"+flag)
		}
	}
	switch inUse := errors.Is(err, syscall.EADDRINUSE); {
	case inUse && len(fields) == 0: // controller-runtime names no setting.
		text += " (another process has this port: choose another by --metrics-bind-address or --pprof-bind-address; 0 switches the listener off)"
	case inUse && !strings.Contains(text, "choose another"):
		text += " (another process has this port: choose another)"
	}
	if errors.Is(err, operator.ErrUnreachable) {
		text += " (--kubeconfig and KUBECONFIG choose another kubeconfig)"
	}
	if errors.Is(err, operator.ErrNoWatches) {
		text += "; start the manager in the operator's directory or name the file with --watches-file"
	}
	return &flagError{text, err}
}

// flagOf returns the flag of a field of options.
func flagOf(field string) string {
	return "--" + cmp.Or(flagsOf[field], strcase.ToKebab(field[strings.LastIndexByte(field, '.')+1:]))
}

// fieldErrors returns the errors of fields that the error wraps.
func fieldErrors(err error) []*options.Error {
	switch e := err.(type) { //nolint:errorlint // It walks what errors.As would.
	case nil:
		return nil
	case *options.Error:
		return []*options.Error{e}
	case interface{ Unwrap() []error }:
		var all []*options.Error
		for _, one := range e.Unwrap() {
			all = append(all, fieldErrors(one)...)
		}
		return all
	default:
		return fieldErrors(errors.Unwrap(err))
	}
}

// flagError is an error as a person at the command line reads it.
type flagError struct {
	text string
	err  error
}

func (e *flagError) Error() string { return e.text }
func (e *flagError) Unwrap() error { return e.err }

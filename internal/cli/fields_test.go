package cli

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"syscall"
	"testing"

	"github.com/iancoleman/strcase"
	"github.com/spf13/cobra"

	"github.com/ensign-operator/ensign/pkg/options"
)

func TestErrorsOfFieldsNameTheFlags(t *testing.T) {
	broken := errors.New("it is broken")
	for want, err := range map[string]error{
		"--run-dir: it is broken":                                                                &options.Error{Field: "RunDir", Err: broken},
		"--ansible-verbosity=8: it is broken":                                                    &options.Error{Field: "AnsibleVerbosity", Value: "8", Err: broken},
		"--ansible-log-events=x: it is broken":                                                   &options.Error{Field: "TaskEvents", Value: "x", Err: broken},
		"start: --leader-elect-lease-duration: it is broken":                                     fmt.Errorf("start: %w", &options.Error{Field: "ctrl.Options.LeaseDuration", Err: broken}),
		"--proxy-port: it is broken\nanother":                                                    errors.Join(fmt.Errorf("%w", &options.Error{Field: "ProxyPort", Err: broken}), errors.New("another")),
		"--proxy-port=1: address already in use (another process has this port: choose another)": &options.Error{Field: "ProxyPort", Value: "1", Err: syscall.EADDRINUSE},
		"no field": errors.New("no field"),
	} {
		got := WithFlagNames(err)
		if got.Error() != want || !errors.Is(got, err) {
			t.Errorf("want %q, got %q", want, got)
		}
	}
	if WithFlagNames(nil) != nil {
		t.Error("no error becomes one")
	}
	if got := WithFlagNames(fmt.Errorf("listen: %w", syscall.EADDRINUSE)); !errors.Is(got, syscall.EADDRINUSE) || got.Error() == "listen: address already in use" {
		t.Errorf("want the flags of listeners, got %v", got)
	}
}

// Every command says flags, and keeps its exit code.
func TestErrorsOfAllCommandsNameTheFlags(t *testing.T) {
	root := &cobra.Command{Use: "ensign", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(&cobra.Command{Use: "run-once", RunE: func(*cobra.Command, []string) error {
		return ExitWith(2, fmt.Errorf("start: %w", &options.Error{Field: "RunDir", Value: "/x", Err: errors.New("it is in use")}))
	}})
	err := Execute(t.Context(), root, "ensign", []string{"run-once"})
	if err == nil || err.Error() != "start: --run-dir=/x: it is in use" || ExitCode(err) != 2 {
		t.Errorf("got %v, and the exit code %d", err, ExitCode(err))
	}
}

// The messages of runs name flags, too: the manager is told theirs.
func TestMessagesOfRunsNameFlags(t *testing.T) {
	o, err := NewFlags().Complete(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{"RunDir": "--run-dir", "MaxConcurrentRuns": "--max-concurrent-runs", "ArtifactsMaxBytes": "--artifacts-max-bytes", "AnsibleArgs": "--ansible-args"} {
		if got := o.SettingName(field); got != want {
			t.Errorf("%s: want %s, got %s", field, want, got)
		}
	}
}

// A field of Options has a flag, so that its errors can name it, or no command sets it.
func TestEveryFieldHasAFlag(t *testing.T) {
	other := map[string]string{
		"Cold": "warm", "NoOwnerReferences": "inject-owner-ref", "UserMetricsNeedToken": "user-metrics-open", "TaskEvents": flagsOf["TaskEvents"], "TaskOutput": "log-format",
		// Of the program and its surroundings.
		"Version": "", "Commit": "", "Dir": "", "Environ": "", "Executable": "", "Registerer": "", "SettingName": "", "TracerProvider": "",
	}
	flags := NewFlags()
	for field := range reflect.TypeFor[options.Options]().Fields() {
		flag, named := other[field.Name]
		if !named {
			flag = strcase.ToKebab(field.Name)
		}
		if flag != "" && flags.Lookup(flag) == nil {
			t.Errorf("%s: there is no flag --%s", field.Name, flag)
		}
	}
}

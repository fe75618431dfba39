package options

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Error is an error that one setting causes.
type Error struct {
	// Field is its name in Options, such as "RunDir", or, of controller-runtime's options, with
	// "ctrl.Options." before it.
	Field string
	// Value is the setting as text, "" where the value is not at fault.
	Value string
	Err   error
}

// Error returns the field, its value, and the error.
func (e *Error) Error() string {
	if strings.Contains(e.Field, ".") {
		return e.Named(e.Field)
	}
	return e.Named("Options." + e.Field)
}

// Named returns the error with another name of the setting, such as that of a flag.
func (e *Error) Named(name string) string {
	if e.Value != "" {
		name += "=" + e.Value
	}
	return name + ": " + e.Err.Error()
}

// Unwrap returns the error of the value.
func (e *Error) Unwrap() error { return e.Err }

// Check returns everything that is wrong with the settings, alone or together, as far as that is
// known without content and API server. Each error has the type *Error.
func (o Options) Check() error {
	return errors.Join(
		upTo("AnsibleVerbosity", o.AnsibleVerbosity, 7),
		upTo("MaxVerbosity", o.MaxVerbosity, 7),
		upTo("MaxConcurrentReconciles", o.MaxConcurrentReconciles, 1<<16),
		upTo("MaxConcurrentRuns", o.MaxConcurrentRuns, 1<<16),
		upTo("MaxConcurrentJobs", o.MaxConcurrentJobs, 1<<16),
		upTo("ProxyPort", o.ProxyPort, 1<<16-1),
		upTo("ProxyOpenPort", o.ProxyOpenPort, 1<<16-1),
		failIf(o.RunIdleTimeout < 0, "RunIdleTimeout", o.RunIdleTimeout, "allowed is 0s and more"),
		failIf(o.MaxBackoff != 0 && o.MaxBackoff < time.Second, "MaxBackoff", o.MaxBackoff, "allowed is 1s and more"),
		failIf(o.ArtifactsMaxBytes > 0 && o.ArtifactsMaxBytes < 1<<20, "ArtifactsMaxBytes", o.ArtifactsMaxBytes, "allowed is 1Mi and more, or 0"),
		checkQuotes("AnsibleArgs", o.AnsibleArgs),
		checkNames("DropEnv", o.DropEnv),
		checkServiceAccount("DefaultServiceAccount", o.DefaultServiceAccount),
		checkAddress("UserMetricsBindAddress", o.UserMetricsBindAddress),
		checkTaskEvents(o.TaskEvents),
	)
}

func failIf(wrong bool, field string, value any, message string) error {
	if !wrong {
		return nil
	}
	return &Error{field, fmt.Sprint(value), errors.New(message)}
}

func upTo(field string, value, most int) error {
	return failIf(value < 0 || value > most, field, value, fmt.Sprintf("allowed is 0 to %d", most))
}

func checkTaskEvents(value string) error {
	for _, allowed := range []string{"", TaskEventsNothing, TaskEventsTasks, TaskEventsEverything} {
		if strings.EqualFold(value, allowed) {
			return nil
		}
	}
	return failIf(true, "TaskEvents", value, fmt.Sprintf("allowed are %s, %s and %s", TaskEventsNothing, TaskEventsTasks, TaskEventsEverything))
}

func checkNames(field string, names []string) error {
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, "= \t") {
			return failIf(true, field, "", fmt.Sprintf("invalid name of an environment variable: %q; write names, without values", name))
		}
	}
	return nil
}

func checkServiceAccount(field, name string) error {
	return failIf(name != "" && len(validation.IsDNS1123Subdomain(name)) > 0, field, name, "allowed is the name of a service account, such as deployer")
}

func checkAddress(field, value string) error {
	if value == "" || value == "0" {
		return nil
	}
	_, port, err := net.SplitHostPort(value)
	_, portErr := strconv.ParseUint(port, 10, 16)
	return failIf(err != nil || portErr != nil, field, value, "allowed is an address such as 127.0.0.1:5050, or 0 for none")
}

// checkQuotes returns an error if the value ends within quotes or with a backslash. ansible-runner
// splits the value as a shell does; with an open quote, each run would fail with a traceback.
func checkQuotes(field, value string) error {
	var quote rune
	escaped := false
	for _, c := range value {
		switch {
		case escaped:
			escaped = false
		case c == '\\' && quote != '\'':
			escaped = true
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		}
	}
	return failIf(quote != 0 || escaped, field, "", "the value ends inside quotes or with a backslash; quote it as for a shell")
}

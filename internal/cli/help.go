package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Register adds the flags to the command, whose help then shows them in groups.
func (f *Flags) Register(cmd *cobra.Command) {
	for _, g := range f.groups {
		cmd.Flags().AddFlagSet(g.flags)
	}
	addDeprecatedFlags(cmd.Flags())
	defaultUsage := cmd.UsageFunc()
	cmd.SetUsageFunc(func(called *cobra.Command) error {
		if called != cmd { // A subcommand inherits this function, but not the flags.
			return defaultUsage(called)
		}
		_, err := io.WriteString(cmd.OutOrStderr(), f.usage(cmd))
		return err
	})
	cmd.SetFlagErrorFunc(func(called *cobra.Command, err error) error {
		hint := ""
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedName() == "watch-namespace" {
			hint = "the environment variable WATCH_NAMESPACE names the namespaces to watch, joined by commas; "
		}
		return fmt.Errorf("%w; %s\"%s --help\" lists the flags", err, hint, called.CommandPath())
	})
}

func (f *Flags) usage(cmd *cobra.Command) string {
	var text strings.Builder
	fmt.Fprintf(&text, "Usage:\n  %s [flags]\n", cmd.CommandPath())
	if cmd.HasAvailableSubCommands() {
		text.WriteString("\nCommands:\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&text, "  %-14s %s\n", sub.Name(), sub.Short)
			}
		}
	}
	if cmd.HasExample() {
		fmt.Fprintf(&text, "\nExamples:\n%s\n", cmd.Example)
	}
	for _, g := range f.groups {
		fmt.Fprintf(&text, "\n%s:\n%s", g.title, g.flags.FlagUsagesWrapped(helpWidth))
	}
	text.WriteString(environmentHelp)
	return text.String()
}

// environmentHelp describes the environment variables that the manager reads itself.
const environmentHelp = `
Environment:
  WATCH_NAMESPACE                            namespaces to watch, joined by commas; empty: all
  MAX_CONCURRENT_RECONCILES_<KIND>_<GROUP>   runs of one watch at the same time; in upper case, dots as underscores:
                                             MAX_CONCURRENT_RECONCILES_GREETING_DEMO_EXAMPLE_COM.
                                             WORKER_<KIND>_<GROUP> is an older name of it
  ANSIBLE_VERBOSITY_<KIND>_<GROUP>           verbosity of one watch, 0 to 7
  ANSIBLE_ROLES_PATH                         see --ansible-roles-path
  ANSIBLE_COLLECTIONS_PATH                   see --ansible-collections-path
  ANSIBLE_INVENTORY                          file or directory that is copied into each run; without
                                             it, runs only have localhost
  ANSIBLE_GATHERING=explicit                 roles run without gathering facts
  ANSIBLE_DEBUG_LOGS=true                    as --ansible-log-events=Everything
  OPERATOR_NAME                              see --leader-election-id; deprecated, with a warning
  KUBECONFIG                                 see --kubeconfig
  OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_…        where traces of runs go (OTLP over HTTP); default: nowhere
  VIRTUAL_ENV, PATH                          where the Python environment with Ansible is found

Runs get the environment too, without variables that bypass the API proxy or that --drop-env names. So
ANSIBLE_CONFIG, ANSIBLE_VAULT_PASSWORD_FILE and your own variables work as in a shell. An ansible.cfg
beside the watches file works too.
`

const helpWidth = 110

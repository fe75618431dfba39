package cli

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// The names by which kubectl calls its plugins: "kubectl ensign …", and the completion of it.
const (
	pluginPrefix    = "kubectl-"
	completerPrefix = "kubectl_complete-"
)

// programName returns the name, for help and errors, of the program that was started as path.
func programName(path string) string {
	name := filepath.Base(path)
	for _, prefix := range []string{pluginPrefix, completerPrefix} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return "kubectl " + rest
		}
	}
	return name
}

// asCalled returns the arguments of the command that the program is called as.
func asCalled(path string, args []string) []string {
	if strings.HasPrefix(filepath.Base(path), completerPrefix) {
		return append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return args
}

// rename makes the help of a command and of its subcommands call the program by its name, where
// their texts show a command line.
func rename(root *cobra.Command, path string) {
	own, name := regexp.QuoteMeta(root.Name()), programName(path)
	example := regexp.MustCompile(`(?m)(^  |\| )` + own + ` `)
	quoted := regexp.MustCompile(`(^|")` + own + ` `)
	root.Use = strings.ReplaceAll(name, " ", "-")
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: name}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.Example = example.ReplaceAllString(cmd.Example, "${1}"+name+" ")
		cmd.Long = quoted.ReplaceAllString(cmd.Long, "${1}"+name+" ")
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

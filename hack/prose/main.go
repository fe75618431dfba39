// Command prose takes the texts that people read out of the programs, for `make lint`, which has
// Vale read them:
//
//	go run ./hack/prose DIR
//
// DIR/help gets a file for each command, with its help. For each Go file that is not a test,
// DIR/comments gets the comments of exported names. DIR/all gets all comments of the product and of
// hack, and DIR/messages the texts of the product's errors and log lines. DIR/specs gets the names of
// specs and subtests. Each text is on the line that it has in the Go file. Vale alone judges them.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ensign-operator/ensign/internal/cli"
	"github.com/ensign-operator/ensign/internal/cli/ensigncmd"
	"github.com/ensign-operator/ensign/internal/cli/managercmd"
)

func main() {
	if len(os.Args) != 2 {
		_, _ = fmt.Fprintln(os.Stderr, "usage: prose DIR")
		os.Exit(2)
	}
	errs := []error{writeHelp(os.Args[1])}
	for _, root := range []string{"cmd", "examples", "hack", "internal", "pkg", "test"} {
		errs = append(errs, writeEach(root, filepath.Join(os.Args[1], "comments"), ".md", isProgram, exported))
		errs = append(errs, writeEach(root, filepath.Join(os.Args[1], "specs"), ".spec", isAny, specs))
	}
	for _, root := range []string{"cmd", "internal", "pkg"} {
		errs = append(errs, writeEach(root, filepath.Join(os.Args[1], "messages"), ".msg", isProgram, messages))
	}
	for _, root := range []string{"cmd", "hack", "internal", "pkg"} {
		errs = append(errs, writeEach(root, filepath.Join(os.Args[1], "all"), ".cmt", isProgram, comments))
	}
	if err := errors.Join(errs...); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

func writeHelp(dir string) error {
	var errs []error
	seen := map[string]bool{}
	var write func(*cobra.Command)
	write = func(command *cobra.Command) {
		if command.Hidden || command.Name() == "completion" { // The text of completion is of cobra.
			return
		}
		name := strings.ReplaceAll(command.CommandPath(), " ", "-") + ".txt"
		errs = append(errs, writeFile(filepath.Join(dir, "help", name), help(command, seen)))
		for _, sub := range command.Commands() {
			write(sub)
		}
	}
	for _, program := range []*cobra.Command{managercmd.New(cli.Build{}), ensigncmd.New(cli.Build{})} {
		write(program)
	}
	return errors.Join(errs...)
}

// help returns the help of a command in paragraphs: its text, a paragraph for each flag, and the
// environment variables. seen has the paragraphs that are in the help of another command too.
func help(command *cobra.Command, seen map[string]bool) string {
	paragraphs := []string{command.Short, command.Long}
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			paragraphs = append(paragraphs, flag.Usage)
		}
	})
	if _, environment, ok := strings.Cut(command.UsageString(), "\nEnvironment:\n"); ok {
		environment = strings.ReplaceAll(environment, "\n  ", ".\n\n") // A line is a sentence.
		paragraphs = append(paragraphs, strings.Split(environment, "\n\n")...)
	}
	var text strings.Builder
	for _, paragraph := range paragraphs {
		if paragraph = strings.TrimSpace(paragraph); paragraph == "" || seen[paragraph] {
			continue
		}
		seen[paragraph] = true
		text.WriteString(paragraph)
		if !strings.HasSuffix(paragraph, ".") {
			text.WriteString(".") // Vale takes a sentence without an end together with the next one.
		}
		text.WriteString("\n\n")
	}
	return text.String()
}

func isProgram(path string) bool { return !strings.HasSuffix(path, "_test.go") }

func isAny(string) bool { return true }

// writeEach writes the result of texts for each Go file below root that counts.
func writeEach(root, dir, ending string, counts func(path string) bool, texts func([]byte) (string, error)) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || !counts(path) {
			return err
		}
		source, err := os.ReadFile(path) //nolint:gosec // Of this repository.
		if err != nil {
			return err
		}
		text, err := texts(source)
		if err != nil || text == "" {
			return err
		}
		return writeFile(filepath.Join(dir, path+ending), text)
	})
}

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

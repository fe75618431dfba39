package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
)

// kind is a kind of mutants, by what has to notice them: that is the test of it.
type kind struct {
	// called is what the report calls them, dir where their files are, mark what the first
	// of their marks is.
	called, dir, mark string
	// format is how their files begin: with their marks, and a sentence that says what they
	// break.
	format *regexp.Regexp
	// programs are built of each, atOnce how many are tried at a time.
	programs []string
	atOnce   int
}

// judge builds each mutant, tries it with its programs in a directory, and prints what
// noticed it. It is an error when one was not noticed.
func (k kind) judge(ctx context.Context, root string, out io.Writer, all []*mutant, try func(m *mutant, dir string) error) error {
	var tried errgroup.Group
	tried.SetLimit(k.atOnce)
	var over atomic.Int64
	for _, m := range all {
		tried.Go(func() error {
			began := time.Now()
			m.err = inDirectory(func(dir string) error {
				if err := m.build(ctx, root, dir, k.programs...); err != nil {
					return err
				}
				return try(m, dir)
			})
			m.took = time.Since(began)
			fmt.Fprintf(out, "%d of %d after %.0f s: %s: %s: %s\n", over.Add(1), len(all), m.took.Seconds(), m.name, m.verdict(), oneLine(m.why(), 1_000))
			return ctx.Err()
		})
	}
	if err := tried.Wait(); err != nil {
		return err
	}
	return k.report(out, all)
}

// report prints a table, and how many were caught. It is an error when one was not.
func (k kind) report(out io.Writer, all []*mutant) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\nmutant\t%s\tcaught by\tbecause\tseconds\n", k.mark)
	var errs []error
	for _, m := range all {
		if err := m.failed(); err != nil {
			errs = append(errs, err)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%.0f\n", m.name, m.marks[0], m.verdict(), oneLine(m.why(), 90), m.took.Seconds())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d %s caught\n", len(all)-len(errs), len(all), k.called)
	return errors.Join(errs...)
}

// oneLine is the beginning of a text, as a line of so many characters at most.
func oneLine(text string, width int) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > width {
		text = string(runes[:width]) + "…"
	}
	return text
}

// inDirectory makes a directory for as long as do takes.
func inDirectory(do func(dir string) error) (err error) {
	dir, err := os.MkdirTemp("", "em-") // Short: sockets are below it.
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return do(dir)
}

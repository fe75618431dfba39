package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ensign-operator/ensign/test/faults/campaign"
	"github.com/ensign-operator/ensign/test/faults/oracle"
	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/faults/trial"
)

// mutantsAtOnce is how many mutants are built and tried at a time; their plans
// share what --parallel allows.
const mutantsAtOnce = 3

// patience is how long a mutant may take to settle: what does not come by then is
// not waited for.
const patience = 20 * time.Second

// sentence is what came out of one mutant.
type sentence struct {
	mutant mutant
	// by is the plan that noticed it, and what it saw.
	by   string
	saw  oracle.Violation
	err  error
	took time.Duration
}

// judgeMutants learns from the manager as it is how plans end, tries every mutant and
// prints by which plan it was noticed.
func judgeMutants(ctx context.Context, s settings, o trial.Options) error {
	all, err := loadMutants(o.Root)
	if err != nil {
		return err
	}
	only, err := regexp.Compile(s.only)
	if err != nil {
		return fmt.Errorf("select mutants: %w", err)
	}
	all = slices.DeleteFunc(all, func(m mutant) bool { return !only.MatchString(m.Name) })
	fmt.Fprintf(s.out, "%d mutants\n", len(all))
	c := campaign.Campaign{Parallel: s.parallel, Tell: func(r campaign.Result) { fmt.Fprintln(s.out, r) }}
	err = inLab(ctx, o, func(lab *trial.Lab) (err error) {
		c.Perform = lab.Run
		c.Known, err = c.Baselines(ctx, plan.Baselines())
		return err
	})
	if err != nil {
		return err
	}
	// In another lab the manager as it is must be found good, or nothing that is said
	// of mutants means anything.
	if err := control(ctx, c, o); err != nil {
		return err
	}
	c.Parallel, c.Tell, o.Settle = max(1, s.parallel/mutantsAtOnce), func(campaign.Result) {}, patience
	sentences := make([]*sentence, len(all))
	var tried errgroup.Group
	tried.SetLimit(mutantsAtOnce)
	for i, m := range all {
		tried.Go(func() error {
			began := time.Now()
			sentences[i] = try(ctx, c, o, m)
			sentences[i].took = time.Since(began)
			fmt.Fprintln(s.out, sentences[i])
			return ctx.Err()
		})
	}
	if err := tried.Wait(); err != nil {
		return err
	}
	return report(s.out, sentences)
}

func control(ctx context.Context, c campaign.Campaign, o trial.Options) error {
	return inLab(ctx, o, func(lab *trial.Lab) error {
		c.Perform = lab.Run
		results, err := c.Run(ctx, plan.Baselines())
		if bad := campaign.Bad(results); err == nil && len(bad) > 0 {
			err = fmt.Errorf("the manager as it is would be convicted: %s", bad[0])
		}
		return err
	})
}

// try builds the mutant and performs the plans that have to notice it, and if
// they do not, the fixed ones.
func try(ctx context.Context, c campaign.Campaign, o trial.Options, m mutant) (found *sentence) {
	found = &sentence{mutant: m}
	dir, err := os.MkdirTemp("", "em-")
	if err != nil {
		found.err = err
		return found
	}
	defer func() { found.err = errors.Join(found.err, os.RemoveAll(dir)) }()
	named, err := plan.Select(slices.Concat(plan.Baselines(), plan.All()), m.plans)
	if err == nil {
		o.Manager, err = filepath.Join(dir, "manager"), m.Build(ctx, o.Root, dir, "manager")
	}
	if err != nil {
		found.err = err
		return found
	}
	found.err = inLab(ctx, o, func(lab *trial.Lab) error {
		c.Perform = lab.Run
		for _, plans := range [][]plan.Plan{named, plan.Fast()} {
			results, err := c.Run(ctx, plans)
			if err != nil || found.convict(results) {
				return err
			}
		}
		return nil
	})
	return found
}

// convict looks for a violation of what the mutant breaks.
func (s *sentence) convict(results []campaign.Result) bool {
	for _, r := range results {
		for _, v := range r.Violations {
			if slices.Contains(s.mutant.invariants, v.Invariant) {
				s.by, s.saw = r.Plan.String(), v
				_ = os.RemoveAll(r.Directory) // It is as it should be.
				return true
			}
		}
	}
	return false
}

// verdict is the plan that noticed the mutant, or what is wrong.
func (s *sentence) verdict() string {
	if s.err != nil {
		return "ERROR"
	}
	return cmp.Or(s.by, "SURVIVED")
}

func (s *sentence) String() string {
	if err := s.failed(); err != nil {
		return fmt.Sprintf("%-9s %s: %v", s.verdict(), s.mutant.Name, err)
	}
	return fmt.Sprintf("caught    %s by %s", s.mutant.Name, s.by)
}

// failed is nil for a mutant that was noticed.
func (s *sentence) failed() error {
	if s.err == nil && s.by == "" {
		return fmt.Errorf("mutant %s survived: %s (%s)", s.mutant.Name, s.mutant.breaks, strings.Join(s.mutant.invariants, " "))
	}
	return s.err
}

// report prints the table. It is an error when a mutant survived.
func report(out io.Writer, sentences []*sentence) error {
	rows := make([]row, len(sentences))
	for i, s := range sentences {
		rows[i] = row{[]string{s.mutant.Name, strings.Join(s.mutant.invariants, " "), s.verdict(), shortened(s.saw)}, s.took, s.failed()}
	}
	return tabulate(out, "mutants", []string{"mutant", "invariant", "caught by", "because"}, rows)
}

// row is what came out of a mutant: its cells, how long it took, and what is wrong if it was
// not noticed.
type row struct {
	cells []string
	took  time.Duration
	err   error
}

// tabulate prints a table of what is called so, and how many were caught. It is an error when
// one was not.
func tabulate(out io.Writer, called string, columns []string, rows []row) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\n%s\tseconds\n", strings.Join(columns, "\t"))
	var errs []error
	for _, r := range rows {
		if r.err != nil {
			errs = append(errs, r.err)
		}
		fmt.Fprintf(table, "%s\t%.0f\n", strings.Join(r.cells, "\t"), r.took.Seconds())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d %s caught\n", len(rows)-len(errs), len(rows), called)
	return errors.Join(errs...)
}

// shortened is a violation in one line.
func shortened(v oracle.Violation) string {
	if v.Invariant == "" {
		return ""
	}
	return oneLine(v.String())
}

// oneLine is the beginning of a text's first line.
func oneLine(text string) string {
	const width = 90
	text, _, _ = strings.Cut(text, "\n")
	if runes := []rune(text); len(runes) > width {
		text = string(runes[:width]) + "…"
	}
	return text
}

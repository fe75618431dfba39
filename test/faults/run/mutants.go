package main

import (
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

// judgeMutants tries every mutant and prints by which plan it was noticed.
func judgeMutants(ctx context.Context, s settings, out io.Writer) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	all, err := loadMutants(root)
	if err != nil {
		return err
	}
	only, err := regexp.Compile(s.only)
	if err != nil {
		return fmt.Errorf("select mutants: %w", err)
	}
	all = slices.DeleteFunc(all, func(m mutant) bool { return !only.MatchString(m.name) })
	fmt.Fprintf(out, "%d mutants\n", len(all))
	var sentences []*sentence
	err = onCluster(ctx, func(o trial.Options) error {
		sentences, err = tryAll(ctx, s, o, all)
		return err
	})
	if err != nil {
		return err
	}
	return report(out, sentences)
}

// tryAll learns from the manager as it is how plans end, and tries the mutants.
func tryAll(ctx context.Context, s settings, o trial.Options, all []mutant) ([]*sentence, error) {
	var err error
	out := s.out
	if o.Manager, err = filepath.Abs(s.manager); err != nil {
		return nil, err
	}
	c := campaign.Campaign{Parallel: s.parallel, Tell: func(r campaign.Result) { fmt.Fprintln(out, r) }}
	err = inLab(ctx, o, func(lab *trial.Lab) (err error) {
		c.Trials = lab
		c.Known, err = c.Baselines(ctx, plan.Baselines())
		return err
	})
	if err != nil {
		return nil, err
	}
	// In another lab the manager as it is must be found good, or nothing that is said
	// of mutants means anything.
	if err := control(ctx, c, o); err != nil {
		return nil, err
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
			fmt.Fprintf(out, "%s\n", sentences[i])
			return ctx.Err()
		})
	}
	return sentences, tried.Wait()
}

func control(ctx context.Context, c campaign.Campaign, o trial.Options) error {
	return inLab(ctx, o, func(lab *trial.Lab) error {
		c.Trials = lab
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
		o.Manager, err = m.build(ctx, o.Root, dir)
	}
	if err != nil {
		found.err = err
		return found
	}
	found.err = inLab(ctx, o, func(lab *trial.Lab) error {
		c.Trials = lab
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

func (s *sentence) String() string {
	switch {
	case s.err != nil:
		return fmt.Sprintf("ERROR     %s: %v", s.mutant.name, s.err)
	case s.by == "":
		return fmt.Sprintf("SURVIVED  %s: %s", s.mutant.name, s.mutant.breaks)
	default:
		return fmt.Sprintf("caught    %s by %s", s.mutant.name, s.by)
	}
}

// report prints the table. It is an error when a mutant survived.
func report(out io.Writer, sentences []*sentence) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nmutant\tinvariant\tcaught by\tbecause\tseconds")
	var errs []error
	for _, s := range sentences {
		by := s.by
		switch {
		case s.err != nil:
			by = "ERROR"
			errs = append(errs, s.err)
		case by == "":
			by = "SURVIVED"
			errs = append(errs, fmt.Errorf("mutant %s survived: %s (%s)", s.mutant.name, s.mutant.breaks, strings.Join(s.mutant.invariants, " ")))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%.0f\n", s.mutant.name, strings.Join(s.mutant.invariants, " "), by, shortened(s.saw), s.took.Seconds())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d mutants caught\n", len(sentences)-len(errs), len(sentences))
	return errors.Join(errs...)
}

// shortened is a violation in one line.
func shortened(v oracle.Violation) string {
	const width = 90
	if v.Invariant == "" {
		return ""
	}
	text, _, _ := strings.Cut(v.String(), "\n")
	if runes := []rune(text); len(runes) > width {
		text = string(runes[:width]) + "…"
	}
	return text
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ensign-operator/ensign/test/faults/campaign"
	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/faults/trial"
)

// waitTimeout is how long a mutant may take to settle: what does not come by then is
// not waited for.
const waitTimeout = 20 * time.Second

// ofPlans are the mutants of the manager that fault plans have to notice. Their marks are
// the invariants that they break, one of which has to be seen broken, and the plans, an
// expression of names as PLANS of `make faults` takes it; plans without a fault count too.
//
//	Invariant: I3
//	Plans: ^delete-retry/without/fault$
//	In a sentence, what it breaks.
//
//	--- a/…
func ofPlans() kind {
	return kind{
		called: "mutants", dir: "test/faults/mutants", mark: "invariant", programs: []string{"manager"}, atOnce: 3,
		format: regexp.MustCompile(`(?s)^Invariant: ((?:\b(?:I[1-9]|I1[01]|end|runs) ?)+)\nPlans: ([^\n]+)\n(.+)$`),
	}
}

// plansOf are those that have to notice a mutant.
func plansOf(m *mutant) ([]plan.Plan, error) {
	return plan.Select(slices.Concat(plan.Baselines(), plan.All()), m.marks[1])
}

// judgeMutants learns from the manager as it is how plans end, tries every mutant and
// prints by which plan it was noticed.
func judgeMutants(ctx context.Context, s settings, o trial.Options) error {
	k := ofPlans()
	k.atOnce = cmp.Or(s.atOnce, k.atOnce)
	all, err := k.load(o.Root, s.only)
	if err != nil {
		return err
	}
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
	results, err := perform(ctx, c, o, plan.Baselines())
	if bad := campaign.Bad(results); err == nil && len(bad) > 0 {
		err = fmt.Errorf("the manager as it is would be convicted: %s", bad[0])
	}
	if err != nil {
		return err
	}
	// Their plans share what --parallel allows.
	c.Parallel, c.Tell, o.Settle = max(1, s.parallel/k.atOnce), func(campaign.Result) {}, waitTimeout
	return k.judge(ctx, o.Root, s.out, all, func(m *mutant, dir string) error {
		o := o
		o.Manager = filepath.Join(dir, "manager")
		named, err := plansOf(m)
		for _, plans := range [][]plan.Plan{named, plan.Fast()} { // The fixed ones, if the others do not notice it.
			if err != nil || m.by != "" {
				break
			}
			var results []campaign.Result
			results, err = perform(ctx, c, o, plans)
			m.convict(results)
		}
		return err
	})
}

// perform performs the plans in a lab of their own.
func perform(ctx context.Context, c campaign.Campaign, o trial.Options, plans []plan.Plan) (results []campaign.Result, err error) {
	err = inLab(ctx, o, func(lab *trial.Lab) (err error) {
		c.Perform = lab.Run
		results, err = c.Run(ctx, plans)
		return err
	})
	return results, err
}

// convict looks for a violation of what the mutant breaks.
func (m *mutant) convict(results []campaign.Result) {
	for _, r := range results {
		for _, v := range r.Violations {
			if m.by == "" && slices.Contains(strings.Fields(m.marks[0]), v.Invariant) {
				m.by, m.because = r.Plan.String(), v.String()
				_ = os.RemoveAll(r.Directory) // It is as it should be.
			}
		}
	}
}

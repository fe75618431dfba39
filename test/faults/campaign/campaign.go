// Package campaign performs many fault plans, several at a time, and reports them
// in a table.
package campaign

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ensign-operator/ensign/test/faults/oracle"
	"github.com/ensign-operator/ensign/test/faults/plan"
)

// Result is what came out of one plan.
type Result struct {
	Plan plan.Plan
	// Err says that the plan could not be performed: its point did not come, or the
	// trial itself failed.
	Err        error
	Violations []oracle.Violation
	// Took is how long the manager worked on after the fault had ended, Total
	// the whole trial.
	Took, Total time.Duration
	// Directory holds the manager's log.
	Directory string
}

// Good is true when nothing is wrong.
func (r Result) Good() bool { return r.Err == nil && len(r.Violations) == 0 }

// String reports the result in one line, or in several when something is wrong.
func (r Result) String() string {
	var text strings.Builder
	verdict := "ok"
	if !r.Good() {
		verdict = "VIOLATION"
	}
	fmt.Fprintf(&text, "%-9s %-50s settled %5.1f s, whole %5.1f s", verdict, r.Plan, r.Took.Seconds(), r.Total.Seconds())
	if r.Good() {
		return text.String()
	}
	if r.Err != nil {
		fmt.Fprintf(&text, "\n    the plan could not be performed: %v", r.Err)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(&text, "\n    %s", strings.ReplaceAll(v.String(), "\n", "\n      "))
	}
	fmt.Fprintf(&text, "\n    again: make faults PLANS='^%s$'   log: %s/manager.log", r.Plan, r.Directory)
	return text.String()
}

// Campaign says how plans are performed.
type Campaign struct {
	// Perform performs one plan.
	Perform func(context.Context, plan.Plan) (oracle.Evidence, error)
	// Parallel is how many are performed at a time, 1 at least.
	Parallel int
	// Tell is called with each result, one at a time.
	Tell func(Result)
	// Known is what plans are compared with, as far as it has been performed before.
	Known map[plan.Plan]oracle.Evidence
}

// Run performs the plans in the order given. What they are compared with is
// performed first, as far as it is not known: without that there is nothing to
// judge by.
func (c Campaign) Run(ctx context.Context, plans []plan.Plan) ([]Result, error) {
	baselines, err := c.Baselines(ctx, plans)
	if err != nil {
		return nil, err
	}
	return c.each(ctx, plans, func(e oracle.Evidence) oracle.Evidence { return baselines[e.Plan.Baseline()] }), ctx.Err()
}

// Baselines performs what the plans are compared with, as far as it is not known, and
// returns all that is known then. A plan without a fault is judged by itself.
func (c Campaign) Baselines(ctx context.Context, plans []plan.Plan) (map[plan.Plan]oracle.Evidence, error) {
	known := map[plan.Plan]oracle.Evidence{}
	maps.Copy(known, c.Known)
	var missing []plan.Plan
	for _, p := range plans {
		if _, ok := known[p.Baseline()]; !ok && !slices.Contains(missing, p.Baseline()) {
			missing = append(missing, p.Baseline())
		}
	}
	var mu sync.Mutex
	var errs []error
	for _, r := range c.each(ctx, missing, func(e oracle.Evidence) oracle.Evidence {
		mu.Lock()
		defer mu.Unlock()
		known[e.Plan] = e
		return e
	}) {
		if !r.Good() {
			errs = append(errs, fmt.Errorf("without a fault something is wrong already:\n%s", r))
		}
	}
	return known, errors.Join(errs...)
}

// each performs plans side by side and compares their evidence with what baseline
// returns for it. The results have the order of the plans.
func (c Campaign) each(ctx context.Context, plans []plan.Plan, baseline func(oracle.Evidence) oracle.Evidence) []Result {
	results := make([]Result, len(plans))
	var telling sync.Mutex
	var all errgroup.Group
	all.SetLimit(max(1, c.Parallel))
	for i, p := range plans {
		all.Go(func() error {
			began := time.Now()
			evidence, err := c.Perform(ctx, p)
			r := Result{Plan: p, Err: err, Took: evidence.Took, Total: time.Since(began), Directory: evidence.Directory}
			if err == nil {
				r.Violations = oracle.Judge(evidence, baseline(evidence))
			}
			if r.Good() {
				_ = os.RemoveAll(r.Directory) // Nobody needs it.
			}
			results[i] = r
			telling.Lock()
			defer telling.Unlock()
			c.Tell(r)
			return nil
		})
	}
	_ = all.Wait() // None fails.
	return results
}

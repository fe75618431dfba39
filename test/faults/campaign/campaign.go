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

	"github.com/ensign-operator/ensign/test/faults/oracle"
	"github.com/ensign-operator/ensign/test/faults/plan"
)

// Trials performs one plan.
type Trials interface {
	Run(ctx context.Context, p plan.Plan) (oracle.Evidence, error)
}

// Result is what came out of one plan.
type Result struct {
	Plan plan.Plan
	// Err says that the plan could not be performed: its point did not come, or the
	// trial itself failed.
	Err        error
	Violations []oracle.Violation
	// Took is how long the manager took to settle when the fault had ended, Total
	// the whole trial.
	Took, Total time.Duration
	// Directory holds the manager's log.
	Directory string
}

// Good is true when nothing is wrong.
func (r Result) Good() bool { return r.Err == nil && len(r.Violations) == 0 }

// String tells of the result in one line, or in several when something is wrong.
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
	Trials Trials
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
	run := &campaign{Campaign: c, baselines: maps.Clone(c.Known)}
	if err := run.learn(ctx, plans); err != nil {
		return nil, err
	}
	return run.each(ctx, plans, run.compared), ctx.Err()
}

// Baselines performs what the plans are compared with, and nothing else.
func (c Campaign) Baselines(ctx context.Context, plans []plan.Plan) (map[plan.Plan]oracle.Evidence, error) {
	run := &campaign{Campaign: c, baselines: maps.Clone(c.Known)}
	err := run.learn(ctx, plans)
	return run.baselines, err
}

type campaign struct {
	Campaign

	mu        sync.Mutex
	baselines map[plan.Plan]oracle.Evidence
}

// learn performs the baselines that are not known.
func (c *campaign) learn(ctx context.Context, plans []plan.Plan) error {
	if c.baselines == nil {
		c.baselines = map[plan.Plan]oracle.Evidence{}
	}
	var missing []plan.Plan
	for _, p := range plans {
		if _, known := c.baselines[p.Baseline()]; !known && !slices.Contains(missing, p.Baseline()) {
			missing = append(missing, p.Baseline())
		}
	}
	var errs []error
	for _, r := range c.each(ctx, missing, c.baseline) {
		if !r.Good() {
			errs = append(errs, fmt.Errorf("without a fault something is wrong already:\n%s", r))
		}
	}
	return errors.Join(errs...)
}

// each performs plans side by side. The results have the order of the plans.
func (c *campaign) each(ctx context.Context, plans []plan.Plan, perform func(context.Context, plan.Plan) Result) []Result {
	results := make([]Result, len(plans))
	places := make(chan struct{}, max(1, c.Parallel))
	var all sync.WaitGroup
	for i, p := range plans {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			results[i] = perform(ctx, p)
			if results[i].Good() {
				_ = os.RemoveAll(results[i].Directory) // Nobody needs it.
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.Tell(results[i])
		})
	}
	all.Wait()
	return results
}

// baseline performs a plan without a fault; it is judged by itself.
func (c *campaign) baseline(ctx context.Context, p plan.Plan) Result {
	result, evidence := c.perform(ctx, p)
	if result.Err == nil {
		result.Violations = oracle.Judge(evidence, evidence)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.baselines[p] = evidence
	return result
}

func (c *campaign) compared(ctx context.Context, p plan.Plan) Result {
	result, evidence := c.perform(ctx, p)
	if result.Err == nil {
		c.mu.Lock()
		baseline := c.baselines[p.Baseline()]
		c.mu.Unlock()
		result.Violations = oracle.Judge(evidence, baseline)
	}
	return result
}

func (c *campaign) perform(ctx context.Context, p plan.Plan) (Result, oracle.Evidence) {
	began := time.Now()
	evidence, err := c.Trials.Run(ctx, p)
	return Result{Plan: p, Err: err, Took: evidence.Took, Total: time.Since(began), Directory: evidence.Directory}, evidence
}

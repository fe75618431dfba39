package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/ensign-operator/ensign/hack/bench/report"
)

// Goals of a manager before many children: until it watches them, its memory in
// MiB, and until a deleted one brings its CR back.
const (
	mostUntilLive = 20.0
	mostForMany   = 250.0
	mostUntilRun  = 1.0
)

// measureChildren measures a manager that starts before many children, and how soon it
// takes note of drift. Its runs are no Ansible.
func measureChildren(ctx context.Context, s *session) error {
	many, err := s.furnish(ctx)
	if err != nil {
		return err
	}
	s.say("children: starting the manager; about 5 s")
	manager, err := many.Start(ctx, s.options("children"))
	if err != nil {
		return err
	}
	s.keep(manager.Manager)
	s.add(report.Row{
		Name: "from the manager's start until all of them are watched", Unit: "s", Goal: report.AtMost(mostUntilLive),
		Note: fmt.Sprintf("%d children of %d custom resources", many.CRs*many.Children, many.CRs),
	}, manager.Live.Seconds())

	s.say("children: a run for each of %d custom resources; about 60 s", many.CRs)
	if err := manager.Ran(ctx); err != nil {
		return err
	}
	err = s.idle(ctx, report.Row{
		Name: "memory (RSS) after a run for each custom resource", Goal: report.AtMost(mostForMany),
		Note: "runs that do nothing and succeed, by a stub of ansible-runner",
	})
	if err != nil {
		return err
	}
	if err := s.peak("the most it ever had"); err != nil {
		return err
	}
	times := min(2*s.settings.repeats, many.CRs)
	s.say("children: deleting %d of them, one after another; about 2 s", times)
	var took []float64
	for i := range times {
		d, err := manager.Drift(ctx, i)
		if err != nil {
			return err
		}
		took = append(took, d.Seconds())
	}
	row := report.Row{
		Name: "from a child's deletion to the start of the run", Unit: "s", Goal: report.AtMost(mostUntilRun), Note: fmt.Sprintf("the longest of %d", times),
	}.Of(took...)
	row.Value = slices.Max(took) // Each of them is to be noticed in time.
	s.note(row)
	return nil
}

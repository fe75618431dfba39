package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/test/harness/collector"
)

const (
	// tracedRuns are the CRs that change at once for one sample: so many that the unit in which the
	// kernel tells processor time does not count. Such samples have moreRounds times as many rounds
	// as other parts.
	tracedRuns, moreRounds = 5, 8
	// mostOfUntraced is the goal of a run with traces, as a part of one without.
	mostOfUntraced = 1.02
)

// measureTraces compares a manager that sends traces, to a collector in this process, with one that
// does not. The runs of both are warm.
func measureTraces(ctx context.Context, session *session) error {
	to := collector.Start()
	session.stops = append(session.stops, func() error {
		to.Close()
		return nil
	})
	s, err := session.sides(ctx, "traces")
	if err != nil {
		return err
	}
	s.operator.collector = to.URL
	return s.run(ctx, anyLogin(), []way{warmWay, tracedWay}, s.trace, s.share, func(context.Context) error { return s.received(to) })
}

// trace lets the two managers take turns. Processor time counts from one sample of a manager to the
// next one, because spans are sent some seconds after their run. So the first samples only begin.
func (s *sides) trace(ctx context.Context) error {
	order := []way{warmWay, tracedWay}
	for _, r := range s.operator.roles {
		s.say("traces: creating %d custom resources of %s", tracedRuns, r.title)
		for _, w := range order {
			if err := s.ways[w].create(ctx, r, tracedRuns); err != nil {
				return err
			}
		}
		batches, rounds := map[way][]batch{}, moreRounds*r.rounds
		for i := range rounds + 1 {
			s.say("traces: %s, round %d of %d, %s in each way", r.title, i, rounds, plural(tracedRuns, "run"))
			for _, w := range order {
				done, err := s.change(ctx, w, s.ways[w], r, tracedRuns)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", r.title, w, err)
				}
				batches[w] = append(batches[w], done)
			}
			slices.Reverse(order)
		}
		s.title = "Traces of a run of " + r.title
		s.showTraced(batches)
	}
	return nil
}

// showTraced adds the times of runs without and with traces, and compares them. The manager's own
// process makes the traces. So its additional time, added to whole runs, has less of a busy
// machine's noise than the comparison of all processes.
func (s *sides) showTraced(batches map[way][]batch) {
	const cpu, own = "CPU", "CPU of the manager itself"
	all := map[string]map[way][]float64{}
	for _, f := range []struct {
		name, unit string
		mean       bool
		goal       float64
		taken      func(before, done batch) float64
	}{
		{wallTime, "s", false, mostOfUntraced, func(_, done batch) float64 { return done.wall.Seconds() / tracedRuns }},
		{cpu, "s", false, mostOfUntraced, func(before, done batch) float64 { return (done.after.all - before.after.all).Seconds() / tracedRuns }},
		{own, "ms", true, 0, func(before, done batch) float64 { return milliseconds(done.after.own-before.after.own) / tracedRuns }},
		{"memory of the manager (RSS)", "MiB", false, 0, func(_, done batch) float64 { return done.after.resident }},
	} {
		took := map[way][]float64{}
		all[f.name] = took
		for _, w := range []way{warmWay, tracedWay} {
			for i, done := range batches[w][1:] {
				took[w] = append(took[w], f.taken(batches[w][i], done))
			}
			s.add(report.Row{Name: f.name + ", " + w.one(), Unit: f.unit, Mean: f.mean}, took[w]...)
		}
		note := fmt.Sprintf("%s, in turns, of %s that are changed at once; medians, but of the manager's own CPU means; low … high of traced / warm is the interval of 95 %% confidence",
			plural(len(took[warmWay]), "sample"), plural(tracedRuns, "CR"))
		s.add(report.Row{Name: f.name + ", traced / warm", Goal: report.AtMost(f.goal), Mean: f.mean, Note: note}.Paired(took[tracedWay], took[warmWay]))
	}
	whole := all[cpu][warmWay]
	traced := slices.Clone(whole)
	for i := range traced {
		traced[i] += (all[own][tracedWay][i] - all[own][warmWay][i]) / 1000
	}
	s.add(report.Row{Name: "CPU, with what the manager itself takes more / warm", Goal: report.AtMost(mostOfUntraced), Mean: true}.Paired(traced, whole))
}

// received adds how many spans runs have had. It ends the managers, so that they send the rest. If
// a run has none, the figures do not match their names.
func (s *sides) received(to *collector.Collector) error {
	if err := s.dismiss(); err != nil {
		return err
	}
	runs, spans := 0, to.Spans()
	for _, span := range spans {
		if len(span.GetParentSpanId()) == 0 {
			runs++
		}
	}
	s.title = "All traced runs"
	s.add(report.Row{Name: "spans of a run", Note: fmt.Sprintf("on the average of all roles: %d spans of %d runs came in %d requests", len(spans), runs, len(to.Requests()))},
		float64(len(spans))/float64(max(1, runs)))
	wanted := 0
	for _, r := range s.operator.roles {
		wanted += (moreRounds*r.rounds + 1) * tracedRuns
	}
	if runs < wanted {
		return fmt.Errorf("the collector got %d traces of %d runs", runs, wanted)
	}
	return nil
}

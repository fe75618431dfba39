package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ensign-operator/ensign/hack/bench/report"
)

// compare lets the ways take turns: one run of each in each round.
func (s *sides) compare(ctx context.Context) error {
	for _, r := range s.operator.roles {
		if r.rounds == 0 {
			continue
		}
		runs := map[way][]run{}
		for i := range r.rounds {
			s.say("%s, round %d of %d, a run in each way", r.title, i+1, r.rounds)
			for _, w := range s.ready() {
				done, err := s.change(ctx, w, s.ways[w], r, 1)
				if err != nil {
					return fmt.Errorf("%s: %w", r.title, err)
				}
				done.runs[0].cpu = done.cpu
				runs[w] = append(runs[w], done.runs[0])
			}
		}
		s.show(r, runs)
		if r.name != s.reference().name {
			continue
		}
		if err := s.memory(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", r.title, err)
		}
	}
	return nil
}

// ready are the ways that were made ready.
func (s *sides) ready() []way {
	return slices.DeleteFunc(ways(), func(w way) bool { return s.ways[w] == nil })
}

// change has so many CRs run at once.
func (s *sides) change(ctx context.Context, w way, by runner, r role, crs int) (batch, error) {
	done, err := by.change(ctx, r, crs)
	if w == warmWay {
		s.launches = s.launches.plus(done.launches)
	}
	return done, err
}

// figure is something that a run takes.
type figure struct {
	name, title, note string
	goal              *report.Goal
	taken             func(run) time.Duration
}

// phases are the parts of a run's time, from the change to the status.
func phases() []figure {
	return []figure{
		{name: "change → start", taken: func(r run) time.Duration { return r.Started.Sub(r.changed) }},
		{name: "start → first event", goal: report.AtMost(mostUntilEvent), taken: func(r run) time.Duration { return r.heard.Sub(r.Started) }},
		{name: "→ first task", taken: func(r run) time.Duration { return r.firstTask.Sub(r.heard) }},
		{name: "tasks", taken: func(r run) time.Duration { return r.stats.Sub(r.firstTask) }},
		{name: "stats → end", goal: report.AtMost(mostUntilEnd), taken: func(r run) time.Duration { return r.Ended.Sub(r.stats) }},
		{name: "end → status", goal: report.AtMost(mostUntilStatus), taken: func(r run) time.Duration { return r.reported.Sub(r.Ended) }},
	}
}

// show adds all figures of a role's runs.
func (s *sides) show(of role, runs map[way][]run) {
	s.title = "A run of " + of.title
	tasks := runs[warmWay][0].tasks
	line := of.name + " (" + plural(tasks, "task") + ")"
	add := func(row report.Row, goal *report.Goal) {
		row.Goal = goal
		s.note(row)
	}
	ofReference := func(goal *report.Goal) *report.Goal {
		if of.name != s.reference().name {
			return nil
		}
		return goal
	}
	samples := func(w way, unit time.Duration, taken func(run) time.Duration) (took []float64) {
		for _, one := range runs[w] {
			took = append(took, float64(taken(one))/float64(unit))
		}
		return took
	}
	for _, f := range []figure{
		{
			name: wallTime, title: "One run, nothing to change: wall time", taken: func(r run) time.Duration { return r.Ended.Sub(r.Started) },
			note: fmt.Sprintf("medians of %s each, in turns, nothing to change; ratios are of medians, and their low … high of neighbours", plural(of.rounds, "run")),
		},
		{
			name: "CPU", title: "One run: CPU of all its processes", taken: func(r run) time.Duration { return r.cpu },
			note: "all processes of a run; of ours those of the manager too: itself, the servers of warm runs and their forks, from the change to the status",
		},
	} {
		for _, w := range s.ready() {
			row := report.Row{Name: f.name + ", " + w.one() + " run", Unit: "s", Note: f.note, Cell: report.Cell{Table: runsTable, Line: f.title + ": " + line, Column: string(w)}}
			var goal *report.Goal
			if f.name == wallTime && w == warmWay {
				goal = atMost(of.mostWall)
			}
			add(row.Of(samples(w, time.Second, f.taken)...), goal)
		}
		if s.ways[plainWay] == nil {
			continue
		}
		plain := samples(plainWay, time.Second, f.taken)
		add(report.Row{Name: f.name + ", cold / plain"}.Ratio(samples(coldWay, time.Second, f.taken), plain), ofReference(report.AtMost(mostOfCold)))
		add(report.Row{Name: f.name + ", warm / plain"}.Ratio(samples(warmWay, time.Second, f.taken), plain), atMost(of.mostOfPlain))
	}
	milliseconds := func(name string, w way, taken func(run) time.Duration) report.Row {
		return report.Row{Name: name, Unit: "ms"}.Of(samples(w, time.Millisecond, taken)...)
	}
	for _, w := range []way{coldWay, warmWay} {
		add(milliseconds("from change to first task, "+w.one(), w, func(r run) time.Duration { return r.firstTask.Sub(r.changed) }), nil)
		add(milliseconds("from change to status, "+w.one(), w, func(r run) time.Duration { return r.reported.Sub(r.changed) }), nil)
	}
	for _, f := range phases() {
		row := milliseconds("… "+f.name, warmWay, f.taken)
		row.Cell = report.Cell{Table: "phases", Line: "Where the time of a warm run goes: " + line, Column: f.name}
		add(row, ofReference(f.goal))
		if f.name == "tasks" && tasks > 1 {
			add(milliseconds("… … each of "+plural(tasks, "task"), warmWay, func(r run) time.Duration { return f.taken(r) / time.Duration(r.tasks) }), nil)
		}
	}
}

// memory measures runs by themselves, because to look costs time.
func (s *sides) memory(ctx context.Context, r role) error {
	s.say("memory of %s", r.title)
	var servers []float64
	added := map[way][]float64{}
	for _, w := range append(ways(), slices.Repeat([]way{warmWay}, r.rounds-1)...) { // Warm ones have the goals.
		m, err := s.ways[w].measure(ctx, r, 1)
		if err != nil {
			return err
		}
		servers, added[w] = append(servers, m.servers), append(added[w], m.peak-m.idle)
	}
	s.title = "Memory of runs of " + r.title + " (PSS)"
	note := "sampled 50 times a second at most; a page that processes share counts in parts"
	s.add(report.Row{Name: "plain ansible-runner, peak", Unit: "MiB", Note: note}, added[plainWay]...)
	s.add(report.Row{Name: "what a cold run adds, peak", Unit: "MiB", Note: note}, added[coldWay]...)
	s.add(report.Row{Name: "what a warm run adds, peak", Unit: "MiB", Note: note, Goal: report.AtMost(mostAdded)}, added[warmWay]...)
	s.add(report.Row{Name: "the idle server", Unit: "MiB", Note: note, Goal: report.AtMost(mostServers)}, servers[2:]...)
	return nil
}

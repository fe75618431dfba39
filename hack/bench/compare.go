package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ensign-operator/ensign/hack/bench/report"
)

const (
	wallTime = "wall time"
	// runsTable is the table that compares the ways.
	runsTable = "runs"
	// goalCRs change at once, with goalSlots runs at the same time. Their duration has a goal.
	goalCRs, goalSlots = 50, 2
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
		s.title = "A run of " + r.title
		line := r.name + " (" + plural(runs[warmWay][0].tasks, "task") + ")"
		s.showCosts(r, line, runs)
		s.showTimes(r, line, runs)
		if r.name != referenceRole {
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

// figure is something that a run takes, with the goal of a warm one.
type figure struct {
	name, title, note string
	mean              bool
	goal              float64
	taken             func(run) time.Duration
}

// samples are the times of the runs.
func samples(runs []run, unit time.Duration, taken func(run) time.Duration) (took []float64) {
	for _, one := range runs {
		took = append(took, float64(taken(one))/float64(unit))
	}
	return took
}

// goal is one that only the reference role has.
func (r role) goal(most float64) *report.Goal {
	if r.name != referenceRole {
		return nil
	}
	return report.AtMost(most)
}

// showCosts adds the costs of a role's runs in each way, and compares the ways.
func (s *sides) showCosts(of role, line string, runs map[way][]run) {
	for _, f := range []figure{
		{
			name: wallTime, title: "One run, nothing to change: wall time", taken: func(r run) time.Duration { return r.Ended.Sub(r.Started) }, goal: of.mostWall,
			note: fmt.Sprintf("medians of %s each, in turns, nothing to change; ratios are of medians, and their low … high of neighbours", plural(of.rounds, "run")),
		},
		{
			name: "CPU", title: "One run: CPU of all its processes", taken: func(r run) time.Duration { return r.cpu },
			mean: true,
			note: "means, because the kernel tells the time of a process in units of 10 ms: of all processes of a run; of ours those of the manager too: itself, the servers of warm runs and their forks, from the change to the status",
		},
	} {
		took := map[way][]float64{}
		for _, w := range s.ready() {
			took[w] = samples(runs[w], time.Second, f.taken)
			row := report.Row{
				Name: f.name + ", " + w.one() + " run", Unit: "s", Note: f.note, Mean: f.mean,
				Cell: report.Cell{Table: runsTable, Line: f.title + ": " + line, Column: string(w)},
			}
			if w == warmWay {
				row.Goal = report.AtMost(f.goal)
			}
			s.add(row, took[w]...)
		}
		if plain := took[plainWay]; plain != nil {
			s.add(report.Row{Name: f.name + ", cold / plain", Goal: of.goal(1), Mean: f.mean}.Ratio(took[coldWay], plain))
			s.add(report.Row{Name: f.name + ", warm / plain", Goal: report.AtMost(of.mostOfPlain), Mean: f.mean}.Ratio(took[warmWay], plain))
		}
	}
}

// showTimes adds where the time of runs goes, from the change to the status.
func (s *sides) showTimes(of role, line string, runs map[way][]run) {
	add := func(row report.Row, w way, taken func(run) time.Duration) {
		row.Unit = "ms"
		s.add(row, samples(runs[w], time.Millisecond, taken)...)
	}
	for _, w := range []way{coldWay, warmWay} {
		add(report.Row{Name: "from change to first task, " + w.one()}, w, func(r run) time.Duration { return r.firstTask.Sub(r.changed) })
		add(report.Row{Name: "from change to status, " + w.one()}, w, func(r run) time.Duration { return r.reported.Sub(r.changed) })
	}
	for _, f := range []figure{
		{name: "change → start", taken: func(r run) time.Duration { return r.Started.Sub(r.changed) }},
		{name: "start → first event", goal: 200, taken: func(r run) time.Duration { return r.heard.Sub(r.Started) }},
		{name: "→ first task", taken: func(r run) time.Duration { return r.firstTask.Sub(r.heard) }},
		{name: "tasks", taken: func(r run) time.Duration { return r.stats.Sub(r.firstTask) }},
		{name: "stats → end", goal: 50, taken: func(r run) time.Duration { return r.Ended.Sub(r.stats) }},
		{name: "end → status", goal: 20, taken: func(r run) time.Duration { return r.reported.Sub(r.Ended) }},
	} {
		cell := report.Cell{Table: "phases", Line: "Where the time of a warm run goes: " + line, Column: f.name}
		add(report.Row{Name: "… " + f.name, Goal: of.goal(f.goal), Cell: cell}, warmWay, f.taken)
		if tasks := runs[warmWay][0].tasks; f.name == "tasks" && tasks > 1 {
			add(report.Row{Name: "… … each of " + plural(tasks, "task")}, warmWay, func(r run) time.Duration { return f.taken(r) / time.Duration(r.tasks) })
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
	const note = "sampled 50 times a second at most; a page that processes share counts in parts"
	s.add(report.Row{Name: "plain ansible-runner, peak", Unit: "MiB", Note: note}, added[plainWay]...)
	s.add(report.Row{Name: "what a cold run adds, peak", Unit: "MiB", Note: note}, added[coldWay]...)
	s.add(report.Row{Name: "what a warm run adds, peak", Unit: "MiB", Note: note, Goal: report.AtMost(40)}, added[warmWay]...)
	s.add(report.Row{Name: "the idle server", Unit: "MiB", Note: note, Goal: report.AtMost(120)}, servers[2:]...)
	return nil
}

// crowd lets many CRs change at once, by one manager after the other in one namespace.
func (s *sides) crowd(ctx context.Context) error {
	s.title = "Many custom resources of the reference role, changed at once"
	s.say("warm: creating %d custom resources of the reference role", goalCRs)
	// The reference role alone has all slots: some stay free for each kind without a run.
	alone := operator{project: s.project(), watches: "reference.yaml", roles: s.roles()[1:2]}
	if err := errors.Join(s.ways[warmWay].create(ctx, alone.roles[0], goalCRs), s.dismiss()); err != nil {
		return err
	}
	for _, w := range ways() {
		for _, slots := range []int{2, 1, 4} {
			if slots != goalSlots && w != warmWay && !s.settings.full {
				continue
			}
			if err := s.cells(ctx, side{session: s.session, operator: alone, way: w, namespace: "warm", slots: slots}); err != nil {
				return fmt.Errorf("%s, %s: %w", w, plural(slots, "slot"), err)
			}
		}
	}
	return nil
}

// row is the one of so many CRs.
func (s side) row(crs int) report.Row {
	row := report.Row{Name: fmt.Sprintf("%s, %s, %s", s.way, plural(crs, "CR"), plural(s.slots, "slot")), Unit: "s"}
	if s.slots == goalSlots {
		line := fmt.Sprintf("CRs changed at once, until the last status (%d slots): %s", goalSlots, plural(crs, "CR"))
		row.Cell = report.Cell{Table: runsTable, Line: line, Column: string(s.way)}
		if s.way == warmWay && crs == goalCRs {
			row.Goal = report.AtMost(9)
		}
	}
	return row
}

// cells measures numbers of CRs with one way and number of slots: without --full as many as fit
// into some minutes. The rest up to the goal's number of CRs is estimated.
func (s *sides) cells(ctx context.Context, on side) error {
	w, reference := on.way, on.operator.roles[0]
	by, err := s.launch(ctx, on)
	if err != nil {
		return err
	}
	var ten float64 // the wall time of ten CRs
	for _, crs := range []int{1, 10, goalCRs} {
		row := on.row(crs)
		if !s.settings.full && crs != 10 && (on.slots != goalSlots || w != warmWay && crs == goalCRs) {
			if on.slots == goalSlots {
				row.Estimated, row.Note = true, fmt.Sprintf("not measured: %d times what 10 took; --full measures it", crs/10)
				s.add(row, ten*float64(crs)/10)
			}
			continue
		}
		s.say("warm: %s", row.Name)
		done, err := s.change(ctx, w, by, reference, crs)
		if err != nil {
			return err
		}
		s.add(row, done.wall.Seconds())
		s.add(report.Row{Name: "… CPU of each", Unit: "s"}, done.cpu.Seconds()/float64(crs))
		if crs == 10 {
			ten = done.wall.Seconds()
		}
		if w == plainWay || crs != 10 {
			continue
		}
		memory, err := by.measure(ctx, reference, on.slots) // By itself, because to look costs time.
		if err != nil {
			return err
		}
		s.add(report.Row{Name: "… memory of all (PSS), peak", Unit: "MiB", Note: "of the manager, its servers and as many live runs as there are slots"}, memory.peak)
	}
	return s.dismiss()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ensign-operator/ensign/hack/bench/report"
)

const (
	// Goal of a cold run, as a multiple of ansible-runner's.
	mostOfCold = 1.0
	// Goals of a warm run's parts, in ms.
	mostUntilEvent  = 200.0
	mostUntilEnd    = 50.0
	mostUntilStatus = 20.0
	// Goals of memory, in MiB: what a live warm run adds, and the idle server.
	mostAdded   = 40.0
	mostServers = 100.0
	// Goal of many custom resources: so many of them with so many slots, in s.
	goalCRs, goalSlots = 50, 2
	mostForCrowd       = 9.0
	wallTime           = "wall time"
	// runsTable is the table that compares the ways.
	runsTable = "runs"
	// leastWarm is the share of runs that must be warm for this to be a measurement.
	leastWarm = 0.95
)

// way is how roles are run.
type way string

const (
	plainWay way = "plain ansible-runner"
	coldWay  way = "cold runs"
	warmWay  way = "warm runs"
)

func ways() []way { return []way{plainWay, coldWay, warmWay} }

// one names one run.
func (w way) one() string { return strings.TrimSuffix(string(w), " runs") }

// side says by what roles are run, and for which CRs.
type side struct {
	way       way
	namespace string
	// slots is how many runs are live at once.
	slots int
	// alone has a manager watch the kind of the reference role only, which has all slots
	// then: some are kept free for each kind that has no live run.
	alone bool
}

// home is the name of a directory for all that is written; a short one.
func (s side) home() string { return fmt.Sprintf("%.4s%t%d", s.way, s.alone, s.slots) }

// runner runs a role for so many CRs.
type runner interface {
	create(ctx context.Context, r role, crs int) error
	change(ctx context.Context, r role, crs int) (batch, error)
	measure(ctx context.Context, r role, crs int) (memory, error)
}

// sides are the ways to run roles, side by side: each for CRs of a namespace of its own.
type sides struct {
	*session

	// open makes a way to run roles ready.
	open func(context.Context, side) (runner, error)
	ways map[way]runner
	// launches are those of all measured runs that should be warm.
	launches launches
}

// measureWarm compares plain ansible-runner, cold runs and warm ones. Only where all of
// it succeeds are the figures put into a document.
func measureWarm(ctx context.Context, session *session) error {
	s := &sides{session: session, ways: map[way]runner{}}
	s.open = s.launch
	for _, stage := range []func(context.Context) error{s.start, s.compare, s.crowd, s.share} {
		if err := stage(ctx); err != nil {
			return err
		}
	}
	if s.settings.table == "" {
		return nil
	}
	return report.Report{Machine: s.machine(), Rows: s.rows}.Splice(s.settings.table)
}

// start starts both managers, and makes CRs, whose first runs make what the later ones
// find.
func (s *sides) start(ctx context.Context) error {
	s.say("warm: booting a cluster; about 10 s")
	definitions, err := s.definitions()
	if err != nil {
		return err
	}
	if err := s.boot(ctx, definitions...); err != nil {
		return err
	}
	s.say("warm: starting two managers, and the first runs of each role; about 60 s")
	if err := errors.Join(s.prepare(ctx, "cold"), s.prepare(ctx, "warm")); err != nil {
		return err
	}
	for i, namespace := range []string{"cold", "cold", "warm"} {
		w := ways()[i]
		if s.ways[w], err = s.open(ctx, side{way: w, namespace: namespace, slots: 2}); err != nil {
			return err
		}
		for _, r := range s.roles() {
			if err := s.ways[w].create(ctx, r, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sides) launch(ctx context.Context, by side) (runner, error) {
	if by.way == plainWay {
		return s.plain(ctx, by)
	}
	return s.startSite(ctx, by)
}

// compare lets the three ways take turns: one run of each in each round.
func (s *sides) compare(ctx context.Context) error {
	for _, r := range s.roles() {
		runs := map[way][]run{}
		for i := range r.rounds {
			s.say("warm: %s, round %d of %d: plain ansible-runner, a cold run, a warm one", r.title, i+1, r.rounds)
			for _, w := range ways() {
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
		for _, w := range ways() {
			row := report.Row{Name: f.name + ", " + w.one() + " run", Unit: "s", Note: f.note, Cell: report.Cell{Table: runsTable, Line: f.title + ": " + line, Column: string(w)}}
			var goal *report.Goal
			if f.name == wallTime && w == warmWay {
				goal = atMost(of.mostWall)
			}
			add(row.Of(samples(w, time.Second, f.taken)...), goal)
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
	s.say("warm: memory of %s", r.title)
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

// crowd lets many CRs change at once, by one manager after the other in one namespace.
func (s *sides) crowd(ctx context.Context) error {
	s.title = "Many custom resources of the reference role, changed at once"
	s.say("warm: creating %d custom resources of the reference role", goalCRs)
	if err := errors.Join(s.ways[warmWay].create(ctx, s.reference(), goalCRs), s.dismiss()); err != nil {
		return err
	}
	for _, w := range ways() {
		for _, slots := range []int{2, 1, 4} {
			if err := s.cells(ctx, side{way: w, namespace: "warm", slots: slots, alone: true}); err != nil {
				return fmt.Errorf("%s, %s: %w", w, plural(slots, "slot"), err)
			}
		}
	}
	return nil
}

// cell is one measurement of many CRs.
type cell struct {
	way        way
	crs, slots int
}

// usual reports whether the cell is measured without --full: what fits into some
// minutes. What is missing for the goal's number of CRs is estimated.
func (c cell) usual() bool {
	return c.slots == goalSlots && (c.way == warmWay || c.crs < goalCRs) || c.way == warmWay && c.crs == 10
}

// row is the wall time of a cell.
func (c cell) row() report.Row {
	r := report.Row{Name: fmt.Sprintf("%s, %s, %s", c.way, plural(c.crs, "CR"), plural(c.slots, "slot")), Unit: "s"}
	if c.slots == goalSlots {
		line := fmt.Sprintf("CRs changed at once, until the last status (%d slots): %s", goalSlots, plural(c.crs, "CR"))
		r.Cell = report.Cell{Table: runsTable, Line: line, Column: string(c.way)}
	}
	if c == (cell{warmWay, goalCRs, goalSlots}) {
		r.Goal = report.AtMost(mostForCrowd)
	}
	return r
}

// cells measures the numbers of CRs with one way and number of slots.
func (s *sides) cells(ctx context.Context, on side) error {
	w, slots, reference := on.way, on.slots, s.reference()
	if !s.settings.full && !(cell{w, 10, slots}).usual() {
		return nil
	}
	by, err := s.open(ctx, on)
	if err != nil {
		return err
	}
	var ten float64 // the wall time of ten CRs
	for _, crs := range []int{1, 10, goalCRs} {
		c := cell{w, crs, slots}
		row := c.row()
		if !s.settings.full && !c.usual() {
			if slots == goalSlots {
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
		memory, err := by.measure(ctx, reference, slots) // By itself, because to look costs time.
		if err != nil {
			return err
		}
		s.add(report.Row{Name: "… memory of all (PSS), peak", Unit: "MiB", Note: "of the manager, its servers and as many live runs as there are slots"}, memory.peak)
	}
	return s.dismiss()
}

// share is that of the runs which were warm. Where it is too small, the other figures
// are not what they are called.
func (s *sides) share(context.Context) error {
	l, share := s.launches, s.launches.share()
	note := fmt.Sprintf("%d runs were warm, %d cold; %d modules of warm ones were started cold, each of which counts as a run; runs before the first warm one, those that make the custom resources and those that memory is sampled of are not counted", l.Warm, l.Cold, l.Refused)
	s.add(report.Row{Part: "All warm runs", Name: "warm share", Unit: "%", Goal: report.AtLeast(100 * leastWarm), Note: note}, 100*share)
	if share < leastWarm {
		return fmt.Errorf("only %.0f %% of the runs that should be warm were: %s", 100*share, note)
	}
	return nil
}

// atMost is a goal, and 0 is none.
func atMost(limit float64) *report.Goal {
	if limit == 0 {
		return nil
	}
	return report.AtMost(limit)
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

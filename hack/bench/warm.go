package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/hack/bench/trial"
)

const (
	// Goals of a cold and of a warm run, as multiples of ansible-runner's.
	mostOfCold = 1.05
	mostOfWarm = 0.1
	// Goals of a warm run's parts, in ms.
	mostUntilEvent  = 200.0
	mostUntilEnd    = 50.0
	mostUntilStatus = 20.0
	// Goals of memory, in MiB: what a live warm run adds, and the idle servers of all
	// runs with one environment.
	mostAdded   = 40.0
	mostServers = 150.0
	// Goal of many custom resources: so many of them with so many slots, in s.
	goalCRs, goalSlots = 50, 2
	mostForCrowd       = 35.0
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

// runner runs a role in one way.
type runner interface {
	Create(ctx context.Context, c trial.Content, names []string) error
	Change(ctx context.Context, c trial.Content, names []string) (trial.Batch, error)
	Measure(ctx context.Context, c trial.Content, names []string) (trial.Memory, error)
}

// sides are the ways to run roles, side by side: each for CRs of a namespace of its own.
type sides struct {
	*session

	// open makes a way to run roles ready. Of the options it is given what differs.
	open func(context.Context, way, trial.Options) (runner, error)
	ways map[way]runner
	// launches are those of all measured runs that should be warm.
	launches trial.Launches
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
	definitions, err := trial.Definitions(s.root)
	if err != nil {
		return err
	}
	if err := s.boot(ctx, definitions...); err != nil {
		return err
	}
	s.say("warm: starting two managers, and the first runs of each role; about 60 s")
	if err := errors.Join(trial.Furnish(ctx, s.client, "cold"), trial.Furnish(ctx, s.client, "warm")); err != nil {
		return err
	}
	for i, namespace := range []string{"cold", "cold", "warm"} {
		w := ways()[i]
		if s.ways[w], err = s.open(ctx, w, trial.Options{Namespace: namespace, Slots: 2}); err != nil {
			return err
		}
		for _, c := range s.contents() {
			if err := s.ways[w].Create(ctx, c.Content, c.Names(1)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sides) launch(ctx context.Context, w way, o trial.Options) (runner, error) {
	o.Root, o.Kubeconfig, o.Client, o.Warm = s.root, s.cluster.Kubeconfig, s.client, w == warmWay
	o.Home = filepath.Join(s.dir, fmt.Sprintf("%.4s%t%d", w, o.Alone, o.Slots))
	if w != plainWay {
		site, err := trial.Start(ctx, o)
		if err == nil {
			s.keep(site.Manager)
		}
		return site, err
	}
	plain, err := trial.NewPlain(o)
	if err == nil {
		s.about, err = plain.Versions(ctx)
	}
	return plain, err
}

// content is a role with how often it is run in each way.
type content struct {
	trial.Content

	rounds int
	goal   bool // The goals are of this one.
}

func (s *sides) contents() []content {
	nothing, reference, mysql := trial.Contents(s.root)
	n := s.settings.rounds
	return []content{{nothing, n, false}, {reference, n, true}, {mysql, max(1, n/2), false}}
}

// turn is one run of a role, with the processor time of all its processes.
type turn struct {
	trial.Run

	cpu time.Duration
}

// compare lets the three ways take turns: one run of each in each round.
func (s *sides) compare(ctx context.Context) error {
	for _, c := range s.contents() {
		turns := map[way][]turn{}
		for i := range c.rounds {
			s.say("warm: %s, round %d of %d: plain ansible-runner, a cold run, a warm one", c.Name, i+1, c.rounds)
			for _, w := range ways() {
				batch, err := s.change(ctx, w, s.ways[w], c.Content, 1)
				if err != nil {
					return fmt.Errorf("%s: %w", c.Name, err)
				}
				turns[w] = append(turns[w], turn{batch.Runs[0], batch.CPU})
			}
		}
		s.show(c, turns)
		if !c.goal {
			continue
		}
		if err := s.memory(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}

// change has so many CRs run at once.
func (s *sides) change(ctx context.Context, w way, by runner, c trial.Content, crs int) (trial.Batch, error) {
	batch, err := by.Change(ctx, c, c.Names(crs))
	if w == warmWay {
		s.launches = s.launches.Plus(batch.Launches)
	}
	return batch, err
}

// figure is something that a run takes.
type figure struct {
	name, title, note string
	goal              *report.Goal
	taken             func(turn) time.Duration
}

// phases are the parts of a run's time, from the change to the status.
func phases() []figure {
	return []figure{
		{name: "change → start", taken: func(t turn) time.Duration { return t.Started.Sub(t.Changed) }},
		{name: "start → first event", goal: report.AtMost(mostUntilEvent), taken: func(t turn) time.Duration { return t.Heard.Sub(t.Started) }},
		{name: "→ first task", taken: func(t turn) time.Duration { return t.FirstTask.Sub(t.Heard) }},
		{name: "tasks", taken: func(t turn) time.Duration { return t.Stats.Sub(t.FirstTask) }},
		{name: "stats → end", goal: report.AtMost(mostUntilEnd), taken: func(t turn) time.Duration { return t.Ended.Sub(t.Stats) }},
		{name: "end → status", goal: report.AtMost(mostUntilStatus), taken: func(t turn) time.Duration { return t.Reported.Sub(t.Ended) }},
	}
}

// show adds all figures of a content's turns.
func (s *sides) show(c content, turns map[way][]turn) {
	s.title = "A run of " + c.Name
	tasks := turns[warmWay][0].Tasks
	line := c.Role + " (" + plural(tasks, "task") + ")"
	add := func(row report.Row, goal *report.Goal) {
		if c.goal {
			row.Goal = goal
		}
		s.note(row)
	}
	samples := func(w way, unit time.Duration, taken func(turn) time.Duration) (took []float64) {
		for _, t := range turns[w] {
			took = append(took, float64(taken(t))/float64(unit))
		}
		return took
	}
	for _, f := range []figure{
		{
			name: "wall time", title: "One run, nothing to change: wall time", taken: func(t turn) time.Duration { return t.Ended.Sub(t.Started) },
			note: fmt.Sprintf("medians of %s each, in turns, nothing to change; ratios are of medians, and their low … high of neighbours", plural(c.rounds, "run")),
		},
		{
			name: "CPU", title: "One run: CPU of all its processes", taken: func(t turn) time.Duration { return t.cpu },
			note: "all processes of a run; of ours those of the manager too: itself, the servers of warm runs and their forks, from the change to the status",
		},
	} {
		for _, w := range ways() {
			row := report.Row{Name: f.name + ", " + w.one() + " run", Unit: "s", Note: f.note, Cell: report.Cell{Table: runsTable, Line: f.title + ": " + line, Column: string(w)}}
			add(row.Of(samples(w, time.Second, f.taken)...), nil)
		}
		plain := samples(plainWay, time.Second, f.taken)
		add(report.Row{Name: f.name + ", cold / plain"}.Ratio(samples(coldWay, time.Second, f.taken), plain), report.AtMost(mostOfCold))
		add(report.Row{Name: f.name + ", warm / plain"}.Ratio(samples(warmWay, time.Second, f.taken), plain), report.AtMost(mostOfWarm))
	}
	milliseconds := func(name string, w way, taken func(turn) time.Duration) report.Row {
		return report.Row{Name: name, Unit: "ms"}.Of(samples(w, time.Millisecond, taken)...)
	}
	for _, w := range []way{coldWay, warmWay} {
		add(milliseconds("from change to first task, "+w.one(), w, func(t turn) time.Duration { return t.FirstTask.Sub(t.Changed) }), nil)
		add(milliseconds("from change to status, "+w.one(), w, func(t turn) time.Duration { return t.Reported.Sub(t.Changed) }), nil)
	}
	for _, f := range phases() {
		row := milliseconds("… "+f.name, warmWay, f.taken)
		row.Cell = report.Cell{Table: "phases", Line: "Where the time of a warm run goes: " + line, Column: f.name}
		add(row, f.goal)
		if f.name == "tasks" && tasks > 1 {
			add(milliseconds("… … each of "+plural(tasks, "task"), warmWay, func(t turn) time.Duration { return f.taken(t) / time.Duration(t.Tasks) }), nil)
		}
	}
}

// memory measures runs by themselves, because to look costs time.
func (s *sides) memory(ctx context.Context, c content) error {
	s.say("warm: memory of %s", c.Name)
	var servers []float64
	added := map[way][]float64{}
	for _, w := range append(ways(), slices.Repeat([]way{warmWay}, c.rounds-1)...) { // Warm ones have the goals.
		m, err := s.ways[w].Measure(ctx, c.Content, c.Names(1))
		if err != nil {
			return err
		}
		servers, added[w] = append(servers, m.Servers), append(added[w], m.Peak-m.Idle)
	}
	s.title = "Memory of runs of " + c.Name + " (PSS)"
	note := "sampled 50 times a second at most; a page that processes share counts in parts"
	s.add(report.Row{Name: "plain ansible-runner, peak", Unit: "MiB", Note: note}, added[plainWay]...)
	s.add(report.Row{Name: "what a cold run adds, peak", Unit: "MiB", Note: note}, added[coldWay]...)
	s.add(report.Row{Name: "what a warm run adds, peak", Unit: "MiB", Note: note, Goal: report.AtMost(mostAdded)}, added[warmWay]...)
	s.add(report.Row{Name: "the idle servers of one environment", Unit: "MiB", Note: note, Goal: report.AtMost(mostServers)}, servers[2:]...)
	return nil
}

// crowd lets many CRs change at once, by one manager after the other in one namespace.
func (s *sides) crowd(ctx context.Context) error {
	s.title = "Many custom resources of the reference role, changed at once"
	_, reference, _ := trial.Contents(s.root)
	s.say("warm: creating %d custom resources of the reference role", goalCRs)
	if err := errors.Join(s.ways[warmWay].Create(ctx, reference, reference.Names(goalCRs)), s.dismiss()); err != nil {
		return err
	}
	for _, w := range ways() {
		for _, slots := range []int{2, 1, 4} {
			if err := s.cells(ctx, w, slots, reference); err != nil {
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
func (s *sides) cells(ctx context.Context, w way, slots int, reference trial.Content) error {
	if !s.settings.full && !(cell{w, 10, slots}).usual() {
		return nil
	}
	by, err := s.open(ctx, w, trial.Options{Namespace: "warm", Slots: slots, Alone: true})
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
		batch, err := s.change(ctx, w, by, reference, crs)
		if err != nil {
			return err
		}
		s.add(row, batch.Wall.Seconds())
		s.add(report.Row{Name: "… CPU of each", Unit: "s"}, batch.CPU.Seconds()/float64(crs))
		if crs == 10 {
			ten = batch.Wall.Seconds()
		}
		if w == plainWay || crs != 10 {
			continue
		}
		memory, err := by.Measure(ctx, reference, reference.Names(slots)) // By itself, because to look costs time.
		if err != nil {
			return err
		}
		s.add(report.Row{Name: "… memory of all (PSS), peak", Unit: "MiB", Note: "of the manager, its servers and as many live runs as there are slots"}, memory.Peak)
	}
	return s.dismiss()
}

// share is that of the runs which were warm. Where it is too small, the other figures
// are not what they are called.
func (s *sides) share(context.Context) error {
	l, share := s.launches, s.launches.Share()
	note := fmt.Sprintf("%d runs were warm, %d cold; %d modules of warm ones were started cold, each of which counts as a run; runs before the first warm one, those that make the custom resources and those that memory is sampled of are not counted", l.Warm, l.Cold, l.Refused)
	s.add(report.Row{Part: "All warm runs", Name: "warm share", Unit: "%", Goal: report.AtLeast(100 * leastWarm), Note: note}, 100*share)
	if share < leastWarm {
		return fmt.Errorf("only %.0f %% of the runs that should be warm were: %s", 100*share, note)
	}
	return nil
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

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

// runner runs a role in one way.
type runner interface {
	Change(ctx context.Context, c trial.Content, names []string) (trial.Batch, error)
	Measure(ctx context.Context, c trial.Content, names []string) (trial.Memory, error)
}

// sides are the ways to run roles, side by side: each for CRs of a namespace of its own.
type sides struct {
	*session

	ways map[way]runner
	// launches are those of all measured runs that should be warm.
	launches trial.Launches
}

// measureWarm compares plain ansible-runner, cold runs and warm ones. Only where all of
// it succeeds are the figures put into a document.
func measureWarm(ctx context.Context, session *session) error {
	s := &sides{session: session, ways: map[way]runner{}}
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

// start starts both managers.
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
	}
	for _, c := range s.contents() {
		if err := errors.Join(s.create(ctx, warmWay, c.Content, c.Names(1)), s.create(ctx, coldWay, c.Content, c.Names(1))); err != nil {
			return err
		}
	}
	return nil
}

// create makes CRs of a way that has a manager, whose first runs make what the later
// ones find.
func (s *sides) create(ctx context.Context, w way, c trial.Content, names []string) error {
	site, _ := s.ways[w].(*trial.Site) // It is one.
	return site.Create(ctx, c, names)
}

// open makes a way to run roles ready. Of the options it is given what differs.
func (s *sides) open(ctx context.Context, w way, o trial.Options) (runner, error) {
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

// compare lets the three ways take turns.
func (s *sides) compare(ctx context.Context) error {
	for _, c := range s.contents() {
		t := turns{}
		for i := range c.rounds {
			s.say("warm: %s, round %d of %d: plain ansible-runner, a cold run, a warm one", c.Name, i+1, c.rounds)
			if err := s.take(ctx, c, t); err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
		}
		for _, row := range t.rows(c) {
			s.note(row)
		}
		if err := s.memory(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}

// memory measures runs by themselves, because to look costs time.
func (s *sides) memory(ctx context.Context, c content) error {
	if !c.goal {
		return nil
	}
	s.say("warm: memory of %s", c.Name)
	var servers []float64
	added := map[way][]float64{}
	for _, w := range ways() {
		for i := range c.rounds {
			if i > 0 && w != warmWay {
				break // Warm ones have the goals.
			}
			m, err := s.ways[w].Measure(ctx, c.Content, c.Names(1))
			if err != nil {
				return err
			}
			servers, added[w] = append(servers, m.Servers), append(added[w], m.Peak-m.Idle)
		}
	}
	s.title = "Memory of runs of " + c.Name + " (PSS)"
	note := "sampled 50 times a second at most; a page that processes share counts in parts"
	s.add(report.Row{Name: "plain ansible-runner, peak", Unit: "MiB", Note: note}, added[plainWay]...)
	s.add(report.Row{Name: "what a cold run adds, peak", Unit: "MiB", Note: note}, added[coldWay]...)
	s.add(report.Row{Name: "what a warm run adds, peak", Unit: "MiB", Note: note, Goal: report.AtMost(mostAdded)}, added[warmWay]...)
	s.add(report.Row{Name: "the idle servers of one environment", Unit: "MiB", Note: note, Goal: report.AtMost(mostServers)}, servers[2:]...)
	return nil
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

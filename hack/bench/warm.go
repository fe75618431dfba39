package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	wallTime    = "wall time"
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
	// operator is what a manager runs.
	operator operator
}

// operator is a project, one of its files of watches, and the roles of it that are run.
type operator struct {
	title            string // what names of rows end with, where it matters whose they are
	project, watches string
	roles            []role
	env              []string // of its manager
}

// home is the name of a directory for all that is written; a short one.
func (s side) home() string { return fmt.Sprintf("%.4s%.3s%d", s.way, s.operator.watches, s.slots) }

// runner runs a role for so many CRs.
type runner interface {
	create(ctx context.Context, r role, crs int) error
	change(ctx context.Context, r role, crs int) (batch, error)
	measure(ctx context.Context, r role, crs int) (memory, error)
}

// sides are the ways to run roles, side by side: each for CRs of a namespace of its own.
type sides struct {
	*session

	operator operator
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
	s.open, s.operator = s.launch, operator{project: s.project(), watches: "sides.yaml", roles: s.roles()}
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
	login := map[string]string{"username": "bench", "password": "bench"}
	if err := errors.Join(s.prepare(ctx, "cold", login), s.prepare(ctx, "warm", login)); err != nil {
		return err
	}
	for i, namespace := range []string{"cold", "cold", "warm"} {
		if err := s.begin(ctx, ways()[i], namespace); err != nil {
			return err
		}
	}
	return nil
}

// begin makes a way ready, and a CR of each role.
func (s *sides) begin(ctx context.Context, w way, namespace string) (err error) {
	if s.ways[w], err = s.open(ctx, side{way: w, namespace: namespace, slots: 2, operator: s.operator}); err != nil {
		return err
	}
	for _, r := range s.operator.roles {
		if err := s.ways[w].create(ctx, r, 1); err != nil {
			return err
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

// share is that of the runs which were warm. Where it is too small, the other figures
// are not what they are called.
func (s *sides) share(context.Context) error {
	l, share := s.launches, s.launches.share()
	note := fmt.Sprintf("%d runs were warm, %d cold; %d modules of warm ones were started cold, each of which counts as a run; runs before the first warm one, those that make the custom resources and those that memory is sampled of are not counted", l.Warm, l.Cold, l.Refused)
	s.add(report.Row{Part: "All warm runs", Name: "warm share" + s.operator.title, Unit: "%", Goal: report.AtLeast(100 * leastWarm), Note: note}, 100*share)
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

package sides

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/hack/bench/trial"
	"github.com/ensign-operator/ensign/test/controlplane"
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

// Options say what is measured, all of them required.
type Options struct {
	// Root is the directory of the source tree, and Dir one for files, with a short path.
	Root, Dir string
	// Rounds is how often each role is run in each way, half as often where that takes long.
	Rounds int
	// Full measures all numbers of custom resources and slots.
	Full bool
	// Say is told how far it is.
	Say func(format string, args ...any)
}

// Figures are what was measured.
type Figures struct {
	// About tells with which versions.
	About  string
	Rows   []report.Row
	Charts []report.Chart
}

// sides are the ways to run roles, side by side: each for CRs of a namespace of its own.
type sides struct {
	Options
	Figures

	cluster    *controlplane.Cluster
	client     client.WithWatch
	plain      *trial.Plain
	cold, warm *trial.Site
	// only is the manager that is there when those are not, and kind what it is.
	only *trial.Site
	kind string
	// launches are those of all measured runs of the warm one.
	launches trial.Launches
}

// Measure compares plain ansible-runner, cold runs and warm ones. With an error it gives
// what it has measured until then.
func Measure(ctx context.Context, o Options) (f Figures, err error) {
	s := &sides{Options: o}
	defer func() { err = errors.Join(err, s.takeDown()) }()
	for _, stage := range []func(context.Context) error{s.boot, s.start, s.compare, s.crowd, s.share} {
		if err := stage(ctx); err != nil {
			return s.Figures, err
		}
	}
	return s.Figures, nil
}

func (s *sides) boot(ctx context.Context) (err error) {
	s.Say("warm: booting a cluster; about 10 s")
	if s.cluster, err = controlplane.Start(ctx, controlplane.Options{Bin: filepath.Join(s.Root, "bin", "controlplane")}); err != nil {
		return err
	}
	if err := apiextensionsv1.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	if s.client, err = client.NewWithWatch(s.cluster.Config, client.Options{Scheme: scheme.Scheme}); err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	return trial.Define(ctx, s.client, s.Root)
}

// options are those of a site, whose files have a directory of that name.
func (s *sides) options(namespace, home string) trial.Options {
	return trial.Options{Root: s.Root, Home: filepath.Join(s.Dir, home), Kubeconfig: s.cluster.Kubeconfig, Client: s.client, Namespace: namespace, Slots: 2}
}

// start starts both managers, whose first runs make what the later ones find.
func (s *sides) start(ctx context.Context) (err error) {
	s.Say("warm: starting two managers, and the first runs of each role; about 60 s")
	for _, name := range []string{"cold", "warm"} {
		if err := trial.Furnish(ctx, s.client, name); err != nil {
			return err
		}
	}
	if s.plain, err = trial.NewPlain(s.options("cold", "plain")); err != nil {
		return err
	}
	if s.About, err = s.plain.Versions(ctx); err != nil {
		return err
	}
	if s.cold, err = trial.Start(ctx, s.options("cold", "cold")); err != nil {
		return err
	}
	hot := s.options("warm", "warm")
	hot.Warm = true
	if s.warm, err = trial.Start(ctx, hot); err != nil {
		return err
	}
	if err := s.warm.Heat(ctx); err != nil {
		return err
	}
	for _, c := range s.contents() {
		for _, site := range []*trial.Site{s.warm, s.cold} {
			if err := site.Create(ctx, c.Content, c.Names(1)); err != nil {
				return err
			}
		}
	}
	return nil
}

// content is a role with how often it is run in each way.
type content struct {
	trial.Content

	rounds int
	goal   bool // The goals are of this one.
}

func (s *sides) contents() []content {
	nothing, reference, mysql := trial.Contents(s.Root)
	n := s.Rounds
	return []content{{nothing, n, false}, {reference, n, true}, {mysql, max(1, n/2), false}}
}

// compare lets the three ways take turns.
func (s *sides) compare(ctx context.Context) error {
	drawn := newOneRun()
	for _, c := range s.contents() {
		t := turns{}
		for i := range c.rounds {
			s.Say("warm: %s, round %d of %d: plain ansible-runner, a cold run, a warm one", c.Name, i+1, c.rounds)
			if err := t.take(ctx, s, c); err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
		}
		s.launches = s.launches.Plus(t.launches)
		s.Rows = append(s.Rows, t.rows(c)...)
		drawn.add(c, &t)
		if err := s.memory(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	s.Charts = append(s.Charts, drawn.wall, drawn.cpu, drawn.where)
	return nil
}

// memory measures runs by themselves, because to look costs time.
func (s *sides) memory(ctx context.Context, c content) error {
	if !c.goal {
		return nil
	}
	s.Say("warm: memory of %s", c.Name)
	plain, err := s.plain.Peak(ctx, c.Content, c.Names(1)[0])
	if err != nil {
		return err
	}
	cold, err := s.cold.Measure(ctx, c.Content, c.Names(1))
	if err != nil {
		return err
	}
	var servers, added report.Samples
	for range c.rounds {
		m, err := s.warm.Measure(ctx, c.Content, c.Names(1))
		if err != nil {
			return err
		}
		servers, added = append(servers, m.Servers), append(added, m.Peak-m.Idle)
	}
	add := func(row report.Row, name string, goal *report.Goal) {
		row.Part, row.Name, row.Goal, row.Note = "Memory of runs of "+c.Name+" (PSS)", name, goal, "sampled 50 times a second at most; a page that processes share counts in parts"
		s.Rows = append(s.Rows, row)
	}
	add(report.Samples{plain}.Row("MiB"), "plain ansible-runner, peak", nil)
	add(report.Samples{cold.Peak - cold.Idle}.Row("MiB"), "what a cold run adds, peak", nil)
	add(added.Row("MiB"), "what a warm run adds, peak", report.AtMost(mostAdded))
	add(servers.Row("MiB"), "the idle servers of one environment", report.AtMost(mostServers))
	return nil
}

// share is that of the runs which were warm. Where it is too small, the other figures
// are not what they are called.
func (s *sides) share(context.Context) error {
	share := s.launches.Share()
	row := report.Samples{100 * share}.Row("%")
	row.Part, row.Name, row.Goal = "All warm runs", "warm share", report.AtLeast(100*leastWarm)
	row.Note = fmt.Sprintf("%d runs were warm, %d cold; %d modules of warm ones were started cold, each of which counts as a run; runs before the first warm one, those that make the custom resources and those that memory is sampled of are not counted", s.launches.Warm, s.launches.Cold, s.launches.Refused)
	s.Rows = append(s.Rows, row)
	if share < leastWarm {
		return fmt.Errorf("only %.0f %% of the runs that should be warm were: %s", 100*share, row.Note)
	}
	return nil
}

func (s *sides) takeDown() error {
	err := s.dismiss()
	if s.cluster != nil {
		err = errors.Join(err, s.cluster.Stop())
	}
	return err
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/test/harness/collector"
	"github.com/ensign-operator/ensign/test/mariadb"
)

func TestWhatCannotBeMeasuredIsRefused(t *testing.T) {
	for why, args := range map[string][]string{
		"a table of nothing":                  {"--parts=proxy", "--table=f.md"},
		"two parts that look like one":        {"--parts=memory proxy"},
		"no part":                             {"--parts="},
		"an argument that is no flag":         {"memory"},
		"a median of nothing":                 {"--rounds=0"},
		"more runs than there are resources":  {"--crs=4"},
		"no run, whose memory cannot be seen": {"--runs=0"},
		"a manager of nothing":                {"--scale=0"},
	} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%s is no error", why)
		}
	}
	var help strings.Builder
	if _, err := parse([]string{"--help"}, &help); !errors.Is(err, pflag.ErrHelp) || !strings.Contains(help.String(), "memory,warm,proxy,children,mysql,traces,releases,scale,shards") {
		t.Errorf("got error %v, and help that does not name the parts: %s", err, help.String())
	}
}

func TestShow(t *testing.T) {
	missed := []report.Row{report.Row{Name: "one", Value: 2, Goal: report.AtMost(1)}.Judged(), report.Row{Value: 1, Goal: report.AtMost(1)}.Judged()}
	for why, c := range map[string]struct {
		settings settings
		rows     []report.Row
		want     string // is in what is printed
		fail     bool
	}{
		"a table": {rows: missed, want: "MISSED: one."},
		"a program that reads JSON always gets some": {settings: settings{json: true}, want: `"rows": []`},
		"missed goals where they are errors":         {settings: settings{strict: true, json: true}, rows: missed, want: `"met": false`, fail: true},
		"met goals":                                  {settings: settings{strict: true}, rows: missed[1:], want: "1 of 1 goals met.\n"},
	} {
		var out strings.Builder
		err := c.settings.show(report.Report{Rows: c.rows}, &out)
		if (err != nil) != c.fail || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: error %v, printed %q", why, err, out.String())
		}
	}
}

// stub is a runner of which each phase of a run takes twice as long as the one before it,
// and the first one of the n-th run n times as long as that of the first run.
type stub struct {
	way     way
	first   time.Duration
	changes *int
}

func (stub) create(context.Context, role, int) error { return nil }

func (s stub) change(_ context.Context, _ role, crs int) (batch, error) {
	*s.changes++
	phase, moment := s.first*time.Duration(*s.changes), time.Unix(0, 0)
	one := run{changed: moment, tasks: 3}
	for _, at := range []*time.Time{&one.Started, &one.heard, &one.firstTask, &one.stats, &one.Ended, &one.reported} {
		moment = moment.Add(phase)
		*at, phase = moment, 2*phase
	}
	done := batch{runs: []run{one}, launches: launches{Warm: crs}}
	for range crs {
		done.wall, done.cpu = done.wall+time.Second, done.cpu+s.first
	}
	all := done.cpu * time.Duration(*s.changes)
	done.after = standing{all: all, own: all / 10, resident: float64(60 + len(s.way) + *s.changes)}
	return done, nil
}

func (s stub) measure(context.Context, role, int) (memory, error) {
	return memory{peak: float64(100 + len(s.way)), idle: 90, servers: 80}, nil
}

// TestFigures compares what parts warm, mysql and traces print of such runs with testdata/warm.txt, which
// UPDATE=1 writes anew.
func TestFigures(t *testing.T) {
	b := &bench{progress: io.Discard, settings: settings{rounds: 2}}
	s := &sides{side: side{session: &session{bench: b}, operator: operator{roles: b.roles()}}, ways: map[way]runner{}}
	s.launch = func(_ context.Context, by side) (runner, error) {
		first := map[way]time.Duration{plainWay: 100 * time.Millisecond, coldWay: 104 * time.Millisecond, warmWay: 11 * time.Millisecond, tracedWay: 12 * time.Millisecond}
		return stub{by.way, first[by.way], new(int)}, nil
	}
	for _, w := range ways() {
		s.ways[w], _ = s.launch(t.Context(), side{way: w})
	}
	var got strings.Builder
	show := func(stages ...func(context.Context) error) {
		for _, stage := range stages {
			if err := stage(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := (report.Report{Rows: s.rows}).Table(&got); err != nil {
			t.Fatal(err)
		}
	}
	show(s.compare, s.crowd, s.share)
	got.WriteString(report.Report{Rows: s.rows}.Markdown())
	if err := (report.Report{Rows: s.rows[2:4]}).JSON(&got); err != nil {
		t.Fatal(err)
	}
	s.settings.full, s.rows = true, nil
	show(s.crowd)
	// The roles of a server run by managers alone.
	s.operator.roles, s.rows = b.mysqlRoles(&mariadb.Server{Host: "127.0.0.1", Port: 3306}), nil
	delete(s.ways, plainWay)
	show(s.compare)
	s.operator.roles, s.rows = b.roles()[1:2], nil
	s.ways[tracedWay], _ = s.launch(t.Context(), side{way: tracedWay})
	show(s.trace)
	text := regexp.MustCompile(`(?m) +$`).ReplaceAllString(got.String(), "")
	golden := filepath.Join("testdata", "warm.txt")
	want, err := os.ReadFile(golden)
	if diff := cmp.Diff(string(want), text); err != nil || diff != "" {
		t.Errorf("error %v: %s", err, diff)
		if os.Getenv("UPDATE") != "" {
			_ = os.WriteFile(golden, []byte(text), 0o600)
		}
	}
}

func TestTooFewWarmRunsAreNoMeasurement(t *testing.T) {
	for name, test := range map[string]struct {
		launches launches
		fail     bool
	}{
		"95 of a hundred":   {launches{Warm: 95, Cold: 5}, false},
		"94 of a hundred":   {launches{Warm: 94, Cold: 6}, true},
		"modules are cold":  {launches{Warm: 20, Refused: 2}, true},
		"nothing was there": {launches{}, true},
	} {
		s := &sides{side: side{session: &session{}}, launches: test.launches}
		if err := s.share(t.Context()); (err != nil) != test.fail || len(s.rows) != 1 || *s.rows[0].Met == test.fail {
			t.Errorf("%s: error %v, rows %+v", name, err, s.rows)
		}
	}
}

func TestRunsWithoutTracesAreNoMeasurementOfThem(t *testing.T) {
	to := collector.Start()
	t.Cleanup(to.Close)
	s := &sides{side: side{session: &session{}, operator: operator{roles: []role{{rounds: 1}}}}}
	if err := s.received(to); err == nil || len(s.rows) != 1 {
		t.Errorf("error %v, rows %+v", err, s.rows)
	}
}

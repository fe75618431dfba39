package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/hack/bench/report"
)

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
	return done, nil
}

func (s stub) measure(context.Context, role, int) (memory, error) {
	return memory{peak: float64(100 + len(s.way)), idle: 90, servers: 80}, nil
}

// TestFigures compares what part warm prints of such runs with testdata/warm.txt, which
// UPDATE=1 writes anew.
func TestFigures(t *testing.T) {
	b := &bench{progress: io.Discard, settings: settings{rounds: 2}}
	s := &sides{session: &session{bench: b}, ways: map[way]runner{}, operator: operator{roles: b.roles()}}
	s.open = func(_ context.Context, by side) (runner, error) {
		first := map[way]time.Duration{plainWay: 100 * time.Millisecond, coldWay: 104 * time.Millisecond, warmWay: 11 * time.Millisecond}
		return stub{by.way, first[by.way], new(int)}, nil
	}
	for _, w := range ways() {
		s.ways[w], _ = s.open(t.Context(), side{way: w})
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
	s.settings.full, s.rows = true, nil
	show(s.crowd)
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
		s := &sides{session: &session{}, launches: test.launches}
		if err := s.share(t.Context()); (err != nil) != test.fail || len(s.rows) != 1 || *s.rows[0].Met == test.fail {
			t.Errorf("%s: error %v, rows %+v", name, err, s.rows)
		}
	}
}

func TestFiguresAreShownWholeOrNotAtAll(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	b := &bench{progress: io.Discard, root: t.TempDir(), settings: settings{table: file}} // Where nothing can be measured.
	err := measureWarm(t.Context(), &session{bench: b})
	if _, statErr := os.Stat(file); err == nil || !os.IsNotExist(statErr) {
		t.Errorf("errors %v, %v", err, statErr)
	}
}

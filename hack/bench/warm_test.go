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
	"github.com/ensign-operator/ensign/hack/bench/trial"
)

// stub is a runner of which each phase of a run takes twice as long as the one before it,
// and the first one of the n-th run n times as long as that of the first run.
type stub struct {
	way     way
	first   time.Duration
	changes *int
}

func (stub) Create(context.Context, trial.Content, []string) error { return nil }

func (s stub) Change(_ context.Context, _ trial.Content, names []string) (trial.Batch, error) {
	*s.changes++
	phase, moment := s.first*time.Duration(*s.changes), time.Unix(0, 0)
	run := trial.Run{Changed: moment, Tasks: 3}
	for _, at := range []*time.Time{&run.Started, &run.Heard, &run.FirstTask, &run.Stats, &run.Ended, &run.Reported} {
		moment = moment.Add(phase)
		*at, phase = moment, 2*phase
	}
	batch := trial.Batch{Runs: []trial.Run{run}, Launches: trial.Launches{Warm: len(names)}}
	for range names {
		batch.Wall, batch.CPU = batch.Wall+time.Second, batch.CPU+s.first
	}
	return batch, nil
}

func (s stub) Measure(context.Context, trial.Content, []string) (trial.Memory, error) {
	return trial.Memory{Peak: float64(100 + len(s.way)), Idle: 90, Servers: 80}, nil
}

// TestFigures compares what part warm prints of such runs with testdata/warm.txt, which
// UPDATE=1 writes anew.
func TestFigures(t *testing.T) {
	b := &bench{progress: io.Discard, settings: settings{rounds: 2}}
	s := &sides{session: &session{bench: b}, ways: map[way]runner{}}
	s.open = func(_ context.Context, w way, _ trial.Options) (runner, error) {
		first := map[way]time.Duration{plainWay: 100 * time.Millisecond, coldWay: 104 * time.Millisecond, warmWay: 11 * time.Millisecond}
		return stub{w, first[w], new(int)}, nil
	}
	for _, w := range ways() {
		s.ways[w], _ = s.open(t.Context(), w, trial.Options{})
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
		launches trial.Launches
		fail     bool
	}{
		"95 of a hundred":   {trial.Launches{Warm: 95, Cold: 5}, false},
		"94 of a hundred":   {trial.Launches{Warm: 94, Cold: 6}, true},
		"modules are cold":  {trial.Launches{Warm: 20, Refused: 2}, true},
		"nothing was there": {trial.Launches{}, true},
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

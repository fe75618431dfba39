package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/hack/bench/trial"
)

// aRun is one whose n-th phase took first << n ms.
func aRun(first int) trial.Run {
	changed := time.Unix(0, 0)
	moment := changed
	next := func() time.Time {
		moment = moment.Add(time.Duration(first) * time.Millisecond)
		first *= 2
		return moment
	}
	return trial.Run{Changed: changed, Started: next(), Heard: next(), FirstTask: next(), Stats: next(), Ended: next(), Reported: next(), Tasks: 4}
}

func TestRowsOfTurns(t *testing.T) {
	turns := turns{
		plainWay: {wall: []float64{8, 12}, cpu: []float64{10, 10}},
		coldWay:  {wall: []float64{8, 14}, cpu: []float64{9, 9}, runs: []trial.Run{aRun(100), aRun(100)}},
		warmWay:  {wall: []float64{0.5, 1.1}, cpu: []float64{2, 2}, runs: []trial.Run{aRun(10), aRun(20)}},
	}
	type seen struct {
		value float64
		goal  *report.Goal
	}
	want := map[string]seen{
		"wall time, plain ansible-runner run": {value: 10}, "wall time, cold run": {value: 11}, "wall time, warm run": {value: 0.8},
		"wall time, cold / plain": {1.1, report.AtMost(1.05)}, "wall time, warm / plain": {0.08, report.AtMost(0.1)},
		"CPU, plain ansible-runner run": {value: 10}, "CPU, cold run": {value: 9}, "CPU, warm run": {value: 2},
		"CPU, cold / plain": {0.9, report.AtMost(1.05)}, "CPU, warm / plain": {0.2, report.AtMost(0.1)},
		"from change to first task, cold": {value: 700}, "from change to status, cold": {value: 6300},
		"from change to first task, warm": {value: 105}, "from change to status, warm": {value: 945},
		"… change → start": {value: 15}, "… start → first event": {30, report.AtMost(200)}, "… → first task": {value: 60},
		"… tasks": {value: 120}, "… … each of them": {value: 30}, "… stats → end": {240, report.AtMost(50)}, "… end → status": {480, report.AtMost(20)},
	}
	for _, withGoals := range []bool{true, false} {
		got := map[string]seen{}
		rows := turns.rows(content{Content: trial.Content{Name: "a role", Role: "role"}, rounds: 2, goal: withGoals})
		for _, row := range rows {
			if row.Part != "A run of a role" {
				t.Errorf("%s is of %q", row.Name, row.Part)
			}
			got[row.Name] = seen{row.Value, row.Goal}
		}
		tables := report.Report{Rows: rows}.Markdown()
		for _, line := range []string{
			"One run, nothing to change: wall time: role (4 tasks) | 10.0 s | 11.0 s | 0.800 s |", "One run: CPU of all its processes: role (4 tasks) | 10.0 s | 9.000 s | 2.000 s |",
			"Where the time of a warm run goes: role (4 tasks) | 15.0 ms | 30.0 ms | 60.0 ms | 120 ms | 240 ms | 480 ms |",
		} {
			if !strings.Contains(tables, "\n| "+line+"\n") {
				t.Errorf("there is no line %q in\n%s", line, tables)
			}
		}
		if !withGoals {
			for name, s := range want {
				want[name] = seen{value: s.value}
			}
		}
		about := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(seen{}), about); diff != "" {
			t.Errorf("with goals %t:\n%s", withGoals, diff)
		}
	}
}

func TestUsualCells(t *testing.T) {
	var got []string
	for _, w := range ways() {
		for _, slots := range []int{2, 1, 4} {
			for _, crs := range []int{1, 10, goalCRs} {
				if c := (cell{w, crs, slots}); c.usual() {
					got = append(got, c.row().Name)
				}
			}
		}
	}
	want := []string{
		"plain ansible-runner, 1 CR, 2 slots", "plain ansible-runner, 10 CRs, 2 slots", "cold runs, 1 CR, 2 slots", "cold runs, 10 CRs, 2 slots",
		"warm runs, 1 CR, 2 slots", "warm runs, 10 CRs, 2 slots", "warm runs, 50 CRs, 2 slots", "warm runs, 10 CRs, 1 slot", "warm runs, 10 CRs, 4 slots",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// noRunner says that each run took a second, in all and of the processor.
type noRunner struct{}

func (noRunner) Change(_ context.Context, _ trial.Content, names []string) (trial.Batch, error) {
	took := time.Duration(len(names)) * time.Second
	return trial.Batch{Wall: took, CPU: took, Launches: trial.Launches{Warm: len(names)}}, nil
}

func (noRunner) Measure(context.Context, trial.Content, []string) (trial.Memory, error) {
	return trial.Memory{Peak: 300}, nil
}

func TestRowsOfCrowds(t *testing.T) {
	type seen struct {
		name      string
		value     float64
		estimated bool
		goal      *report.Goal
	}
	for w, want := range map[way][]seen{
		plainWay: {
			{name: "plain ansible-runner, 1 CR, 2 slots", value: 1}, {name: "… CPU of each", value: 1},
			{name: "plain ansible-runner, 10 CRs, 2 slots", value: 10}, {name: "… CPU of each", value: 1},
			{name: "plain ansible-runner, 50 CRs, 2 slots", value: 50, estimated: true},
		},
		coldWay: { // With --full.
			{name: "cold runs, 1 CR, 2 slots", value: 1}, {name: "… CPU of each", value: 1},
			{name: "cold runs, 10 CRs, 2 slots", value: 10}, {name: "… CPU of each", value: 1}, {name: "… memory of all (PSS), peak", value: 300},
			{name: "cold runs, 50 CRs, 2 slots", value: 50}, {name: "… CPU of each", value: 1},
		},
		warmWay: {
			{name: "warm runs, 1 CR, 2 slots", value: 1}, {name: "… CPU of each", value: 1},
			{name: "warm runs, 10 CRs, 2 slots", value: 10}, {name: "… CPU of each", value: 1}, {name: "… memory of all (PSS), peak", value: 300},
			{name: "warm runs, 50 CRs, 2 slots", value: 50, goal: report.AtMost(35)}, {name: "… CPU of each", value: 1},
		},
	} {
		s := &sides{session: &session{bench: &bench{progress: io.Discard, settings: settings{full: w == coldWay}}}}
		if err := s.cells(t.Context(), cell{way: w, slots: goalSlots}, noRunner{}); err != nil {
			t.Fatal(err)
		}
		var got []seen
		for _, row := range s.rows {
			got = append(got, seen{row.Name, row.Value, row.Estimated, row.Goal})
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(seen{})); diff != "" {
			t.Error(diff)
		}
		if counted := s.launches.Warm; (counted == 61) != (w == warmWay) {
			t.Errorf("%s: %d warm runs", w, counted)
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
		t.Run(name, func(t *testing.T) {
			s := &sides{session: &session{}, launches: test.launches}
			if err := s.share(t.Context()); (err != nil) != test.fail {
				t.Errorf("error %v", err)
			}
			if len(s.rows) != 1 || *s.rows[0].Met == test.fail {
				t.Errorf("got rows %+v", s.rows)
			}
		})
	}
}

func TestFiguresAreShownWholeOrNotAtAll(t *testing.T) {
	page, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	b := &bench{progress: io.Discard, root: t.TempDir(), settings: settings{table: file}} // Where nothing can be measured.
	err = measureWarm(t.Context(), &session{bench: b})
	if got, readErr := os.ReadFile(file); err == nil || readErr != nil || string(got) != string(page) {
		t.Errorf("errors %v, %v; the page:\n%s", err, readErr, got)
	}
}

package sides

import (
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
		plain: side{wall: report.Samples{8, 12}, cpu: report.Samples{10, 10}},
		cold:  side{wall: report.Samples{8, 14}, cpu: report.Samples{9, 9}, runs: []trial.Run{aRun(100), aRun(100)}},
		warm:  side{wall: report.Samples{0.5, 1.1}, cpu: report.Samples{2, 2}, runs: []trial.Run{aRun(10), aRun(20)}},
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
		for _, row := range turns.rows(content{Content: trial.Content{Name: "a role"}, rounds: 2, goal: withGoals}) {
			if !strings.HasSuffix(row.Part, "a role") {
				t.Errorf("%s is of %q", row.Name, row.Part)
			}
			got[row.Name] = seen{row.Value, row.Goal}
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

func TestTooFewWarmRunsAreNoMeasurement(t *testing.T) {
	for name, test := range map[string]struct {
		launches trial.Launches
		fail     bool
	}{
		"all are warm":      {trial.Launches{Warm: 20}, false},
		"95 of a hundred":   {trial.Launches{Warm: 95, Cold: 5}, false},
		"94 of a hundred":   {trial.Launches{Warm: 94, Cold: 6}, true},
		"modules are cold":  {trial.Launches{Warm: 20, Refused: 2}, true},
		"no run was warm":   {trial.Launches{Cold: 3}, true},
		"nothing was there": {trial.Launches{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sides{launches: test.launches}
			if err := s.share(t.Context()); (err != nil) != test.fail {
				t.Errorf("error %v", err)
			}
			if len(s.Rows) != 1 || s.Rows[0].Goal.Met(s.Rows[0].Value) == test.fail {
				t.Errorf("got rows %+v", s.Rows)
			}
		})
	}
}

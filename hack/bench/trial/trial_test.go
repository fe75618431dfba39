package trial

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
)

func at(milliseconds int) time.Time {
	return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(milliseconds) * time.Millisecond)
}

const (
	outcome = `{"verdict":"Succeeded","exitCode":0,"started":"2026-01-02T03:04:05Z","ended":"2026-01-02T03:04:06.5Z"}`
	events  = `{"time":"2026-01-02T03:04:05.2Z","event":"playbook_on_start"}
{"time":"2026-01-02T03:04:05.3Z","event":"playbook_on_task_start","task":"one"}
{"time":"2026-01-02T03:04:05.9Z","event":"runner_on_ok"}
{"time":"2026-01-02T03:04:06Z","event":"playbook_on_task_start","task":"two"}
{"time":"2026-01-02T03:04:06.4Z","event":"playbook_on_stats","stats":{"ok":{"localhost":2}}}
`
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		outcome, events string
		fail            bool
	}{
		"a whole run":                    {outcome: outcome, events: events},
		"one without stats":              {outcome: outcome, events: events[:strings.LastIndex(events, `{"time"`)], fail: true},
		"one without tasks":              {outcome: outcome, events: `{"time":"2026-01-02T03:04:06.4Z","event":"playbook_on_stats"}`, fail: true},
		"one that has not ended":         {outcome: `{"started":"2026-01-02T03:04:05Z"}`, events: events, fail: true},
		"events that are none":           {outcome: outcome, events: "text\n", fail: true},
		"an outcome that is no object":   {outcome: "text", events: events, fail: true},
		"nothing, which is no whole run": {outcome: outcome, fail: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse([]byte(test.outcome), []byte(test.events))
			if (err != nil) != test.fail {
				t.Fatalf("error %v", err)
			}
			if test.fail {
				return
			}
			want := Run{Started: at(0), Heard: at(200), FirstTask: at(300), Stats: at(1400), Ended: at(1500), Tasks: 2}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPhasesFollowEachOther(t *testing.T) {
	run := Run{Changed: at(0), Started: at(10), Heard: at(30), FirstTask: at(70), Stats: at(150), Ended: at(310), Reported: at(630)}
	want := map[string]time.Duration{}
	for i, name := range []string{"change → start", UntilEvent, "→ first task", Tasks, UntilEnd, UntilStatus} {
		want[name] = time.Duration(10<<i) * time.Millisecond
	}
	got, sum := map[string]time.Duration{}, time.Duration(0)
	for _, phase := range run.Phases() {
		got[phase.Name] = phase.Taken
		sum += phase.Taken
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if all := run.Reported.Sub(run.Changed); sum != all {
		t.Errorf("they take %s of %s", sum, all)
	}
}

func TestRecordIsOfTheOneRunSinceAChange(t *testing.T) {
	for name, test := range map[string]struct {
		changed time.Time
		started []int // of the runs, in ms
		fail    bool
	}{
		"the last of three":                        {at(2500), []int{1000, 2000, 3000}, false},
		"the only one":                             {at(0), []int{1000}, false},
		"no run since":                             {at(3500), []int{1000, 2000, 3000}, true},
		"two since: which of them is it?":          {at(1500), []int{1000, 2000, 3000}, true},
		"no run at all, and nobody says otherwise": {at(0), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, ms := range test.started {
				run := filepath.Join(dir, at(ms).Format("20060102T150405.000000000Z")+"-run")
				if err := os.Mkdir(run, 0o700); err != nil {
					t.Fatal(err)
				}
				started, err := json.Marshal(at(ms))
				if err != nil {
					t.Fatal(err)
				}
				for file, text := range map[string]string{"outcome.json": strings.Replace(outcome, `"2026-01-02T03:04:05Z"`, string(started), 1), "events.jsonl": events} {
					if err := os.WriteFile(filepath.Join(run, file), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			got, err := record(dir, test.changed)
			if (err != nil) != test.fail {
				t.Fatalf("error %v", err)
			}
			if last := len(test.started) - 1; !test.fail && (got.Changed != test.changed || got.Started != at(test.started[last])) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestTheFirstEventIsHeardWhenItsFileIsMade(t *testing.T) {
	dir := t.TempDir()
	before := time.Now().Add(-time.Second) // Times of files are coarser.
	for file, text := range map[string]string{"outcome.json": outcome, "events.jsonl": events} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := read(dir)
	_, unknown := birth(filepath.Join(dir, "events.jsonl"))
	if late := got.Heard.After(before); err != nil || late == (unknown != nil) {
		t.Errorf("heard at %s, error %v; the time of the file: %v", got.Heard, err, unknown)
	}
	if _, err := birth(dir + "/none"); err == nil {
		t.Error("got a time of a file that there is not")
	}
}

func TestLaunches(t *testing.T) {
	const metrics = `# HELP ansible_operator_runs_total Runs
ansible_operator_runs_total{GVK="bench.ensign.io/v1, Kind=Nothing",mode="cold"} 2
ansible_operator_runs_total{GVK="bench.ensign.io/v1, Kind=Nothing",mode="warm"} 90
ansible_operator_runs_total{GVK="bench.ensign.io/v1, Kind=Reference",mode="cold"} 0
ansible_operator_runs_total{GVK="bench.ensign.io/v1, Kind=Reference",mode="warm"} 8
ansible_operator_warm_fallbacks_total{program="ansible-runner",reason="starting"} 2
ansible_operator_warm_fallbacks_total{program="ansible-playbook",reason="variable"} 1
ansible_operator_warm_fallbacks_total{program="python",reason="variable"} 3
`
	all := parseLaunches(metrics)
	if diff := cmp.Diff(Launches{Warm: 98, Cold: 2, Refused: 3}, all); diff != "" {
		t.Error(diff)
	}
	if got := all.Share(); got != 0.95 {
		t.Errorf("the share is %v", got)
	}
	for name, test := range map[string]struct {
		launches Launches
		want     float64
	}{
		"no runs":               {Launches{}, 0},
		"cold ones only":        {Launches{Cold: 5}, 0},
		"warm ones only":        {Launches{Warm: 5}, 1},
		"many modules of a run": {Launches{Warm: 2, Refused: 5}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.launches.Share(); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	if got := all.minus(Launches{Warm: 90, Cold: 2, Refused: 1}).Plus(Launches{Cold: 1}); got != (Launches{Warm: 8, Cold: 1, Refused: 2}) {
		t.Errorf("got %+v", got)
	}
	if got := parseLaunches(""); got != (Launches{}) {
		t.Errorf("of no metrics: %+v", got)
	}
}

// condition is an object whose status has one condition.
func condition(kind, status, reason, completion string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
		"type": kind, "status": status, "reason": reason, "ansibleResult": map[string]any{"completion": completion},
	}}}}}
}

func TestCompletion(t *testing.T) {
	for name, test := range map[string]struct {
		object *unstructured.Unstructured
		want   string
	}{
		"nothing has run":          {&unstructured.Unstructured{Object: map[string]any{}}, ""},
		"a run has ended":          {condition("Running", "True", "Successful", "now"), "now"},
		"the next one is live":     {condition("Running", "True", "Running", "now"), ""},
		"of another condition":     {condition("Successful", "True", "Successful", "now"), ""},
		"a run without its counts": {condition("Running", "True", "Successful", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := completion(test.object); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestARunThatFailedIsNoNews(t *testing.T) {
	for name, test := range map[string]struct {
		event watch.Event
		fail  bool
	}{
		"one that went well": {watch.Event{Type: watch.Modified, Object: condition("Failure", "False", "Successful", "")}, false},
		"one that failed":    {watch.Event{Type: watch.Modified, Object: condition("Failure", "True", "Failed", "")}, true},
		"the watch's end":    {watch.Event{Type: watch.Error, Object: condition("Failure", "False", "", "")}, true},
		"no object":          {watch.Event{Type: watch.Modified}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := news(test.event); (err != nil) != test.fail {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestContentsAreWhatTheySay(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	nothing, reference, mysql := Contents(root)
	seen := map[string]bool{}
	for _, c := range []Content{nothing, reference, mysql} {
		if _, err := os.Stat(filepath.Join(c.Roles, c.Role, "tasks", "main.yml")); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		var first, second map[string]any
		if err := json.Unmarshal(c.change(at(1)), &first); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if err := json.Unmarshal(c.change(at(2)), &second); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if cmp.Equal(first, second) {
			t.Errorf("%s: a change that changes nothing: %v", c.Name, first)
		}
		for _, name := range c.Names(3) {
			if seen[name] {
				t.Errorf("two CRs have the name %s, and so would what belongs to them", name)
			}
			seen[name] = true
		}
		object := c.object("default", "cr")
		object.Object["spec"] = c.spec
		if text, err := c.variables(object); err != nil || !strings.Contains(string(text), "ansible_operator_meta") {
			t.Errorf("%s: got variables %s, error %v", c.Name, text, err)
		}
	}
}

func TestAPlainRunGetsItsVariablesAndTheInterpreter(t *testing.T) {
	p := &Plain{env: pyenv.Env{Python: "/opt/python"}}
	dir := filepath.Join(t.TempDir(), "private")
	if err := p.write(dir, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"env/extravars":   "{}",
		"inventory/hosts": "localhost ansible_connection=local ansible_python_interpreter=/opt/python\n",
	} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
			t.Errorf("%s: error %v\n%s", name, err, diff)
		}
	}
}

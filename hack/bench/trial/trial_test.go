package trial

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/test/harness"
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

// write writes a run's record.
func write(t *testing.T, dir, outcome, events string) {
	t.Helper()
	err := errors.Join(os.MkdirAll(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "outcome.json"), []byte(outcome), 0o600), os.WriteFile(filepath.Join(dir, "events.jsonl"), []byte(events), 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

func TestRead(t *testing.T) {
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
			dir := t.TempDir()
			before := time.Now().Add(-time.Second) // Times of files are coarser.
			write(t, dir, test.outcome, test.events)
			got, err := read(dir)
			if (err != nil) != test.fail {
				t.Fatalf("error %v", err)
			}
			want := Run{Started: at(0), Heard: got.Heard, FirstTask: at(300), Stats: at(1400), Ended: at(1500), Tasks: 2}
			if diff := cmp.Diff(want, got); diff != "" && !test.fail {
				t.Error(diff)
			}
			// When the file was made, or the event's own time where that is not known.
			if !test.fail && !got.Heard.After(before) && !got.Heard.Equal(at(200)) {
				t.Errorf("the first event was heard at %s", got.Heard)
			}
		})
	}
}

func TestRecordIsOfTheOneRunSinceAChange(t *testing.T) {
	for name, test := range map[string]struct {
		changed time.Time
		started []int // of the runs, in ms
		fail    bool
	}{
		"the last of three":                        {at(2500), []int{1000, 2000, 3000}, false},
		"no run since":                             {at(3500), []int{1000, 2000, 3000}, true},
		"two since: which of them is it?":          {at(1500), []int{1000, 2000, 3000}, true},
		"no run at all, and nobody says otherwise": {at(0), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, ms := range test.started {
				started, _ := at(ms).MarshalText()
				write(t, filepath.Join(dir, at(ms).Format("20060102T150405.000000000Z")+"-run"),
					strings.Replace(outcome, "2026-01-02T03:04:05Z", string(started), 1), events)
			}
			got, err := record(dir, test.changed)
			if (err != nil) != test.fail {
				t.Fatalf("error %v", err)
			}
			if !test.fail && (got.Changed != test.changed || got.Started != at(3000)) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestLaunches(t *testing.T) {
	const metrics = `# HELP ansible_operator_runs_total Runs
ansible_operator_runs_total{GVK="bench.ensign.io/v1, Kind=Nothing",mode="cold"} 2
ansible_operator_runs_total{GVK="bench.ensign.io/v1, Kind=Nothing",mode="warm"} 90
ansible_operator_runs_total{GVK="bench.ensign.io/v1, Kind=Reference",mode="warm"} 8
ansible_operator_warm_fallbacks_total{program="ansible-runner",reason="starting"} 2
ansible_operator_warm_fallbacks_total{program="python",reason="variable"} 3
`
	all := launches(metrics, 1)
	if diff := cmp.Diff(Launches{Warm: 98, Cold: 2, Refused: 3}, all); diff != "" {
		t.Error(diff)
	}
	if got := all.Plus(launches(metrics, -1)); got != (Launches{}) {
		t.Errorf("what was there before counts: %+v", got)
	}
	for want, l := range map[float64]Launches{0.95: all, 0: {Warm: 2, Refused: 5}, 1: {Warm: 5}, 0.5: {Warm: 5, Cold: 5}} {
		if got := l.Share(); got != want {
			t.Errorf("the share of %+v is %v", l, got)
		}
	}
}

// condition is an object whose status has one condition, which is True.
func condition(kind, reason string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
		"type": kind, "status": "True", "reason": reason, "ansibleResult": map[string]any{"completion": "now"},
	}}}}}
}

func TestNewsOfARun(t *testing.T) {
	for name, test := range map[string]struct {
		event      watch.Event
		completion string
		fail       bool
	}{
		"nothing has run":       {watch.Event{Object: &unstructured.Unstructured{Object: map[string]any{}}}, "", false},
		"a run has ended":       {watch.Event{Object: condition("Running", "Successful")}, "now", false},
		"the next one is live":  {watch.Event{Object: condition("Running", "Running")}, "", false},
		"of another condition":  {watch.Event{Object: condition("Successful", "Successful")}, "", false},
		"one that failed":       {watch.Event{Object: condition("Failure", "Failed")}, "", true},
		"an error of the watch": {watch.Event{Type: watch.Error, Object: condition("Running", "Successful")}, "", true},
		"the watch's end":       {watch.Event{}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			object, err := news(test.event)
			if (err != nil) != test.fail {
				t.Fatalf("error %v", err)
			}
			if !test.fail && completion(object) != test.completion {
				t.Errorf("completion %q", completion(object))
			}
		})
	}
}

func TestContentsAreWhatTheySay(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if definitions, err := Definitions(root); err != nil || len(definitions) != 3 {
		t.Errorf("got %d definitions, error %v", len(definitions), err)
	}
	nothing, reference, mysql := Contents(root)
	seen := map[string]bool{}
	for _, c := range []Content{nothing, reference, mysql} {
		if _, err := os.Stat(filepath.Join(c.roles, c.Role, "tasks", "main.yml")); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		var first, second map[string]any
		if err := errors.Join(json.Unmarshal(c.change(at(1)), &first), json.Unmarshal(c.change(at(2)), &second)); err != nil || cmp.Equal(first, second) {
			t.Errorf("%s: error %v, or a change that changes nothing: %v", c.Name, err, first)
		}
		for _, name := range c.Names(3) {
			if seen[name] {
				t.Errorf("two CRs have the name %s, and so would what belongs to them", name)
			}
			seen[name] = true
		}
		if text, err := c.variables(harness.Custom(c.Kind, "default", "cr", c.spec)); err != nil || !strings.Contains(string(text), "ansible_operator_meta") {
			t.Errorf("%s: got variables %s, error %v", c.Name, text, err)
		}
	}
}

func TestATreeHasTheTimeOfChildrenThatEnded(t *testing.T) {
	cmd := exec.Command("sh", "-c", "(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done); echo done; read line || true")
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	pid, self := cmd.Process.Pid, os.Getpid()
	stat := tree(pid)[0].stat
	used, err := treeTime(pid)
	if own := time.Duration(stat.CPUTime() * float64(time.Second)); err != nil || used < own+2*tick {
		t.Errorf("the tree has used %s, the shell alone %s, error %v", used, own, err)
	}
	if above, err := treeTime(self); err != nil || above < used {
		t.Errorf("the tree above has used %s, error %v", above, err)
	}
	if got, want := pids(self, "read line"), map[int]bool{self: true, pid: false}; !cmp.Equal(want, got) {
		t.Errorf("without that text: %v", got)
	}
	if one, both := memory(self, map[int]bool{self: true}), memory(self, nil); one <= 0 || both <= one {
		t.Errorf("got %v MiB, and of both %v", one, both)
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Error(err)
	}
	if got, err := treeTime(pid); err == nil || memory(pid, nil) != 0 {
		t.Errorf("of a process that has ended: %s", got)
	}
}

func TestPeak(t *testing.T) {
	samples, taken := []float64{3, 9, 4}, make(chan struct{})
	i := 0
	got, err := peak(func() float64 {
		if i++; i == len(samples) {
			close(taken)
		}
		return samples[min(i, len(samples))-1]
	}, func() error {
		<-taken
		return os.ErrExist
	})
	if got != 9 || !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v, error %v", got, err)
	}
}

func TestAPlainRunGetsItsVariablesAndTheInterpreter(t *testing.T) {
	dir := t.TempDir()
	if err := (&Plain{env: pyenv.Env{Python: "/opt/python"}}).write(dir, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"env/extravars": "{}", "inventory/hosts": "localhost ansible_connection=local ansible_python_interpreter=/opt/python\n",
	} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: error %v: %s", name, err, got)
		}
	}
}

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/scratch"
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

func TestRecordIsOfTheOneWholeRunSinceAChange(t *testing.T) {
	three := []int{1000, 2000, 3000}
	for name, test := range map[string]struct {
		changed         int
		started         []int // of the runs, in ms
		outcome, events string
		fail            bool
	}{
		"the last of three":                        {2500, three, outcome, events, false},
		"no run since":                             {3500, three, outcome, events, true},
		"two since: which of them is it?":          {1500, three, outcome, events, true},
		"no run at all, and nobody says otherwise": {0, nil, outcome, events, true},
		"one without stats":                        {2500, three, outcome, events[:strings.LastIndex(events, `{"time"`)], true},
		"one without tasks":                        {2500, three, outcome, `{"time":"2026-01-02T03:04:06.4Z","event":"playbook_on_stats"}`, true},
		"one that has not ended":                   {2500, three, `{"started":"2026-01-02T03:04:05Z"}`, events, true},
		"events that are none":                     {2500, three, outcome, "text\n", true},
		"nothing, which is no whole run":           {2500, three, outcome, "", true},
	} {
		dir := t.TempDir()
		before := time.Now().Add(-time.Second) // Times of files are coarser.
		for _, ms := range test.started {
			started, _ := at(ms).MarshalText()
			scratch.Write(t, filepath.Join(dir, at(ms).Format("20060102T150405.000000000Z")+"-run"), map[string]string{
				"events.jsonl": test.events, "outcome.json": strings.Replace(test.outcome, "2026-01-02T03:04:05Z", string(started), 1),
			})
		}
		got, err := record(dir, at(test.changed))
		want := run{changed: at(2500), Started: at(3000), heard: got.heard, firstTask: at(300), stats: at(1400), Ended: at(1500), tasks: 2}
		if (err != nil) != test.fail || !test.fail && want != got {
			t.Errorf("%s: error %v, %s", name, err, cmp.Diff(want, got, cmp.AllowUnexported(run{})))
		}
		// When the file was made, or the event's own time where that is not known.
		if !test.fail && !got.heard.After(before) && !got.heard.Equal(at(200)) {
			t.Errorf("the first event was heard at %s", got.heard)
		}
	}
}

func TestLaunches(t *testing.T) {
	const metrics = `# HELP ansible_operator_runs_total Runs
ansible_operator_runs_total{GVK="bench.ensign.io/v1, Kind=Nothing",mode="cold"} 2
ansible_operator_runs_total{GVK="bench.ensign.io/v1, Kind=Nothing",mode="warm"} 90
ansible_operator_runs_total{GVK="bench.ensign.io/v1, Kind=Reference",mode="warm"} 8
ansible_operator_warm_fallbacks_total{reason="starting"} 2
ensign_operator_module_runs_total{mode="cold",reason="variable"} 3
ensign_operator_module_runs_total{mode="warm",reason=""} 90
`
	all := launchesOf(metrics, 1)
	if diff := cmp.Diff(launches{Warm: 98, Cold: 2, Refused: 3}, all); diff != "" {
		t.Error(diff)
	}
	if got := all.plus(launchesOf(metrics, -1)); got != (launches{}) {
		t.Errorf("what was there before counts: %+v", got)
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
	used, err := treeTime(pid)
	if own := time.Duration(harness.Tree(pid)[0].CPUTime() * float64(time.Second)); err != nil || used < own+2*tick {
		t.Errorf("the tree has used %s, the shell alone %s, error %v", used, own, err)
	}
	if shell, both := treeMemory(self, "read line"), treeMemory(self, ""); shell <= 0 || both <= shell {
		t.Errorf("got %v MiB, and of both %v", shell, both)
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Error(err)
	}
	if got, err := treeTime(pid); err == nil || treeMemory(pid, "") != 0 {
		t.Errorf("of a process that has ended: %s", got)
	}
}

package runner

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/pkg/content"
)

// artifacts reads the files of the only artifact.
func (b *bench) artifacts() map[string]string {
	b.t.Helper()
	paths, err := filepath.Glob(filepath.Join(b.runs, "uid-1", "artifacts", "*", "*"))
	if err != nil {
		b.t.Fatal(err)
	}
	got := map[string]string{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			b.t.Fatal(err)
		}
		got[filepath.Base(path)] = string(content)
	}
	return got
}

func TestArtifactHoldsWhatHappenedAndNoSecrets(t *testing.T) {
	b := newBench(t, "secrets")
	b.Env = append(b.Env, "PASSWORD=hidden-environment")
	b.Args = "-e password=hidden-argument"
	spec := someSpec()
	spec.Watch, spec.CR = "example.com/v1, Kind=Site", "default/sample"
	spec.ExtraVars, spec.Kubeconfig = []byte("hidden-variable"), []byte("hidden-token")
	want(t, b.Run(t.Context(), spec, ignore), content.Failed, content.ReasonFailed)
	got := b.artifacts()
	for name, content := range got {
		if strings.Contains(content, "hidden-") {
			t.Errorf("%s holds a secret: %s", name, content)
		}
	}
	var command struct {
		Watch string   `json:"watch"`
		CR    string   `json:"cr"`
		Argv  []string `json:"argv"`
		Env   []string `json:"env"`
	}
	if err := json.Unmarshal([]byte(got["command.json"]), &command); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(command.Env, " "), "PASSWORD PATH") || !strings.Contains(strings.Join(command.Argv, " "), "--json --ident=run-1") {
		t.Errorf("got command %+v, want its arguments and the names of its environment", command)
	}
	if command.Watch != spec.Watch || command.CR != spec.CR {
		t.Errorf("got %q and %q, want the CR that the run is for", command.Watch, command.CR)
	}
	wantEvents := `{"time":"2026-01-02T03:04:05.000006Z","event":"runner_on_ok","task":"read"}
{"time":"2026-01-02T03:04:05.000006Z","event":"runner_on_failed","task":"write","result":{"msg":"no luck"}}
{"time":"2026-01-02T03:04:05.000006Z","event":"playbook_on_stats","stats":{"ok":{"localhost":1},"failures":{"localhost":1},"processed":{"localhost":1}}}`
	if !strings.HasPrefix(got["events.jsonl"], wantEvents) {
		t.Errorf("got events:\n%s\nwant:\n%s…", got["events.jsonl"], wantEvents)
	}
	var outcome map[string]any
	if err := json.Unmarshal([]byte(got["outcome.json"]), &outcome); err != nil {
		t.Fatal(err)
	}
	if outcome["verdict"] != "Failed" || outcome["reason"] != "Failed" || outcome["exitCode"] != 2.0 || outcome["message"] == "" {
		t.Errorf("got outcome %v", outcome)
	}
}

func TestArtifactOfACommandThatCannotBeStarted(t *testing.T) {
	b := newBench(t, "")
	b.Python = "/missing/python"
	want(t, b.Run(t.Context(), someSpec(), ignore), content.Failed, content.ReasonRunnerCrashed)
	got := b.artifacts()
	if len(got) != 2 || got["command.json"] == "" || !strings.Contains(got["outcome.json"], "/missing/python") {
		t.Errorf("got %q", got)
	}
}

func TestMaxArtifacts(t *testing.T) {
	b := newBench(t, "success")
	for _, id := range []string{"run-1", "run-2", "run-3"} {
		spec := someSpec()
		spec.ID, spec.MaxArtifacts = id, 2
		want(t, b.Run(t.Context(), spec, ignore), content.Succeeded, content.ReasonSuccessful)
	}
	paths, err := filepath.Glob(filepath.Join(b.runs, "uid-1", "artifacts", "*"))
	if err != nil || len(paths) != 2 || !strings.HasSuffix(paths[0], "-run-2") || !strings.HasSuffix(paths[1], "-run-3") {
		t.Errorf("got %q (error %v), want those of the last two runs", paths, err)
	}
}

func TestRecordIsBounded(t *testing.T) {
	b := newBench(t, "")
	dir, err := b.Root.Prepare("uid-1", "run-1", inputs())
	if err != nil {
		t.Fatal(err)
	}
	keep := record{dir: dir, log: funcr.New(func(_, args string) { t.Error(args) }, funcr.Options{})}
	for range 300 {
		keep.event(jobevent.Event{Kind: jobevent.HostFailed, Result: map[string]any{"msg": strings.Repeat("x", 64<<10)}})
	}
	keep.close(0)
	got := b.artifacts()["events.jsonl"]
	if len(got) > maxEventBytes+1<<10 || len(got) < maxEventBytes/2 {
		t.Errorf("got %d bytes, want about %d", len(got), maxEventBytes)
	}
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if last := lines[len(lines)-1]; !json.Valid([]byte(last)) || len(last) > 100 {
		t.Errorf("got last line %.200q, want one that says that there was more", last)
	}
}

// Events leave enough of the CR's limit for the outcome.
func TestRecordEndsWithinTheLimitOfTheRunDirectory(t *testing.T) {
	b := newBench(t, "")
	if err := b.Root.Limit(1 << 20); err != nil {
		t.Fatal(err)
	}
	dir, err := b.Root.Prepare("uid-1", "run-1", inputs())
	if err != nil {
		t.Fatal(err)
	}
	keep := record{dir: dir, log: funcr.New(func(_, args string) { t.Error(args) }, funcr.Options{})}
	keep.command(Spec{}, command{path: "/p", args: []string{strings.Repeat("a", 4<<10)}})
	for range 1000 {
		keep.event(jobevent.Event{Kind: jobevent.TaskStart, Task: "one of many"})
	}
	keep.result(Result{Outcome: content.Outcome{Message: strings.Repeat("\"<", 2<<10)}}, jobevent.ProcessExit{})
	keep.close(0)
	got := b.artifacts()
	lines := strings.SplitAfter(got["events.jsonl"], "\n")
	if len(lines) < 100 || lines[len(lines)-2] != truncatedLine || strings.Count(got["events.jsonl"], truncatedLine) != 1 || strings.Contains(got["events.jsonl"], "\x00") {
		t.Errorf("got %d lines, the last %q, want some and then once that the rest is left out", len(lines), lines[len(lines)-2:])
	}
	if !json.Valid([]byte(got["outcome.json"])) || got["command.json"] == "" || b.Root.Bytes() > 1<<20/16 {
		t.Errorf("got outcome %.100q and %d bytes, want all files within a sixteenth of 1 MiB", got["outcome.json"], b.Root.Bytes())
	}
}

// A full disk must not turn a good run into a failed one.
func TestARecordThatCannotBeWrittenIsLogged(t *testing.T) {
	b := newBench(t, "")
	dir, err := b.Root.Prepare("uid-1", "run-1", inputs())
	if err != nil {
		t.Fatal(err)
	}
	var logged []string
	keep := record{dir: dir, log: funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})}
	if err := os.RemoveAll(filepath.Join(b.runs, "uid-1", "artifacts")); err != nil {
		t.Fatal(err)
	}
	keep.command(Spec{}, command{path: "/p"})
	keep.event(jobevent.Event{Kind: jobevent.TaskStart})
	keep.result(Result{}, jobevent.ProcessExit{})
	keep.close(0)
	if diff := cmp.Diff(1, len(logged)); diff != "" {
		t.Errorf("got %q logged, want one line", logged)
	}
}

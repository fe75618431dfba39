package stub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
)

// TestMain builds the stub once.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "stub-")
	if err == nil {
		err = errors.Join(Build(context.Background(), "../../..", dir), os.Setenv("STUB_ENVIRONMENT", dir))
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func environment(t *testing.T) pyenv.Env {
	t.Helper()
	dir := os.Getenv("STUB_ENVIRONMENT")
	env, err := pyenv.Find(pyenv.Search{Dir: dir, Environ: []string{"VIRTUAL_ENV=" + dir}})
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func encoded(t *testing.T, script Script) []byte {
	t.Helper()
	play, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&script)
	if err != nil {
		t.Fatal(err)
	}
	variables, err := extravars.Build(map[string]any{
		"apiVersion": "g.io/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": "ns", "name": "w", "uid": "u", "generation": int64(3)},
		"spec":     map[string]any{"play": play, "text": "{{ 6*7 }}"},
	}, extravars.Options{GVK: schema.GroupVersionKind{Group: "g.io", Version: "v1", Kind: "Widget"}, SnakeCase: true, MarkUnsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	data, err := variables.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// private makes what the manager prepares for a run, and the command that it
// starts then.
func private(t *testing.T, env pyenv.Env, dir string, script Script) *exec.Cmd {
	t.Helper()
	for name, content := range map[string][]byte{"run/env/extravars": encoded(t, script), "run/kubeconfig": []byte("k")} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(env.Runner, "run", filepath.Join(dir, "run"), "--json", "--ident=r1", "-p", "/p/play.yml")
	cmd.Env = []string{"PATH=" + env.Bin, "JOB_ID=42", "KUBECONFIG=" + filepath.Join(dir, "run", "kubeconfig"), DirVariable + "=" + dir}
	return cmd
}

func TestManagersTakeItForAnEnvironment(t *testing.T) {
	env := environment(t)
	if _, err := env.Inspect(t.Context()); err != nil {
		t.Error(err)
	}
	if err := env.Canary(t.Context(), []byte("{}")); err != nil {
		t.Error(err)
	}
}

func TestScriptsComeToTheirEnd(t *testing.T) {
	env := environment(t)
	for name, test := range map[string]struct {
		script       Script
		want         []jobevent.Verdict // of one run after the other
		wantExitZero bool
	}{
		"a play that does well":                 {Script{}, []jobevent.Verdict{jobevent.Succeeded}, true},
		"two failures first":                    {Script{Failures: []Failure{FailedTask, FailedTask}}, []jobevent.Verdict{jobevent.Failed, jobevent.Failed, jobevent.Succeeded}, false},
		"no stats, exit code 0":                 {Script{Failures: []Failure{NoStats}}, []jobevent.Verdict{jobevent.Failed, jobevent.Succeeded}, true},
		"another's stats, exit code 0":          {Script{Failures: []Failure{Forgery}}, []jobevent.Verdict{jobevent.Failed, jobevent.Succeeded}, true},
		"a failure in the stats, exit code 0":   {Script{Failures: []Failure{FailedStats}}, []jobevent.Verdict{jobevent.Failed, jobevent.Succeeded}, true},
		"a module that is a process of its own": {Script{Module: true}, []jobevent.Verdict{jobevent.Succeeded}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var got []jobevent.Verdict
			for range test.want {
				cmd := private(t, env, dir, test.script)
				out, err := cmd.Output()
				var summary jobevent.Summary
				if err := jobevent.Decode(bytes.NewReader(out), jobevent.Handler{Event: summary.Fold}); err != nil {
					t.Fatal(err)
				}
				if test.wantExitZero && err != nil {
					t.Errorf("got %v", err)
				}
				got = append(got, jobevent.Judge(jobevent.Ending{ExitCode: cmd.ProcessState.ExitCode(), Cause: jobevent.Exited}, summary).Verdict)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			expectJournal(t, dir, test.want)
		})
	}
}

// expectJournal expects a start and an end for each run.
func expectJournal(t *testing.T, dir string, verdicts []jobevent.Verdict) {
	t.Helper()
	digest, err := Digest(map[string]any{"a": 1})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, v := range verdicts {
		want = append(want, fmt.Sprint("started u 3 ", v == jobevent.Succeeded), fmt.Sprint("ended u 3 ", v == jobevent.Succeeded))
	}
	records, err := ReadJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range records {
		got = append(got, fmt.Sprint(r.What, " ", r.UID, " ", r.Generation, " ", r.Succeeded))
		if r.Kubeconfig != "k" || r.Run != "r1" || len(r.Digest) != len(digest) || r.Namespace != "ns" || r.Name != "w" || r.Finalizer {
			t.Errorf("got %+v", r)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the journal (-want +got):\n%s", diff)
	}
}

func TestStageHoldsEveryPhase(t *testing.T) {
	env, dir := environment(t), t.TempDir()
	var mu sync.Mutex
	var got []Phase
	told := func() []Phase {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(got)
	}
	stage, err := OpenStage(dir, func(a Announcement) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, a.Phase)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := private(t, env, dir, Script{}).Run(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Phase{Spawned, FirstEvent, MidTask, Stats, Exiting}, told()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := stage.Close(); err != nil {
		t.Fatal(err)
	}
	if err := private(t, env, dir, Script{}).Run(); err != nil || len(told()) != 5 {
		t.Errorf("a run without a stage: %v, %v", err, told())
	}
}

func TestARunEndsWithItsPlaybookOnTermAndWithoutItOnKill(t *testing.T) {
	env := environment(t)
	for name, test := range map[string]struct {
		signal    syscall.Signal
		wantAlive bool
	}{
		"TERM": {syscall.SIGTERM, false},
		"KILL": {syscall.SIGKILL, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			held, release := make(chan Announcement, 1), make(chan struct{})
			stage, err := OpenStage(dir, func(a Announcement) {
				if a.Phase == MidTask {
					held <- a
					<-release
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = stage.Close() }()
			cmd := private(t, env, dir, Script{})
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			playbook := (<-held).Record.PID
			if err := cmd.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil {
				t.Error("the run ended well")
			}
			if alive := syscall.Kill(playbook, 0) == nil; alive != test.wantAlive {
				t.Errorf("ansible-playbook is alive: %v, want %v", alive, test.wantAlive)
			}
			close(release)
			for syscall.Kill(playbook, 0) == nil && !zombie(playbook) {
				<-time.After(time.Millisecond)
			}
		})
	}
}

// zombie is true for a process that waits for its parent, which is not the test.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestASecondLiveRunIsToldOf(t *testing.T) {
	dir := t.TempDir()
	first, alone, err := Enter(dir, "u")
	if err != nil || !alone {
		t.Fatal(alone, err)
	}
	second, alone, err := Enter(dir, "u")
	if err != nil || alone {
		t.Errorf("beside a live run: alone %v, %v", alone, err)
	}
	other, alone, err := Enter(dir, "v")
	if err != nil || !alone {
		t.Errorf("another CR: alone %v, %v", alone, err)
	}
	for _, l := range []*Live{first, second, other} {
		if err := l.Leave(); err != nil {
			t.Error(err)
		}
	}
	if again, alone, err := Enter(dir, "u"); err != nil || !alone {
		t.Errorf("after the end: alone %v, %v", alone, err)
	} else if err := again.Leave(); err != nil {
		t.Error(err)
	}
}

func TestReadSubjectNeedsACustomResource(t *testing.T) {
	for name, text := range map[string]string{"no JSON": "x", "no such variable": "{}", "a variable without an object": `{"_x": 1}`} {
		if got, err := ReadSubject([]byte(text)); err == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestDigestDependsOnWhatASpecSays(t *testing.T) {
	digest := func(text string) string {
		var spec any
		if err := json.Unmarshal([]byte(text), &spec); err != nil {
			t.Fatal(err)
		}
		got, err := Digest(spec)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if digest(`{"a": 1, "b": 2}`) != digest(`{"b": 2, "a": 1}`) {
		t.Error("the order of keys counts")
	}
	if digest(`{"a": 1}`) == digest(`{"a": 2}`) {
		t.Error("values do not count")
	}
}

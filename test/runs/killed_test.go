package runs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/test/harness/scratch"
	"github.com/ensign-operator/ensign/test/runs/bench"
)

// The test binary plays the manager.
func TestMain(m *testing.M) {
	if os.Getenv("MANAGER_OF") != "" {
		manager()
		os.Exit(0)
	}
	code := m.Run()
	if err := closeShared(); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// manager runs the role "content" as the real manager would, until it is killed.
func manager() {
	root, reaper, err := process.TakeOver(os.Getenv("MANAGER_OF"), logr.Discard())
	if err != nil {
		panic(err)
	}
	r := &runner.Runner{
		Root: root, Reaper: reaper, SkipFacts: true,
		Binary: os.Getenv("RUNNER"), Python: os.Getenv("PYTHON"), Env: managerEnv(),
	}
	r.Run(context.Background(), runner.Spec{
		UID: uid, ID: "run-1", Role: "content", RolesPath: filepath.Join(os.Getenv("CONTENT"), "roles"), ExtraVars: []byte("\t\n{}"),
	}, func(jobevent.Event) {})
}

// uid is that of the custom resource that the manager runs the role for.
const uid = bench.UID

// killed is a manager in a process of its own, in the middle of a run.
type killed struct {
	t    *testing.T
	runs string
	cmd  *exec.Cmd
}

// startManager returns when the role has made the file that {{ begun }} stands
// for in its tasks.
func startManager(t *testing.T, tasks string) *killed {
	t.Helper()
	content, python := t.TempDir(), environment(t)
	k := &killed{t: t, runs: filepath.Join(scratch.Short(t), "runs"), cmd: exec.Command(os.Args[0])}
	begun := filepath.Join(content, "begun")
	scratch.Write(t, content, map[string]string{"roles/content/tasks/main.yml": strings.ReplaceAll(tasks, "{{ begun }}", begun)})
	k.cmd.Env = append(os.Environ(), "MANAGER_OF="+k.runs, "CONTENT="+content, "RUNNER="+python.Runner, "PYTHON="+python.Python)
	k.cmd.Stderr = os.Stderr
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		k.kill()
		k.takeOver()
	})
	ctx, cancel := context.WithTimeout(t.Context(), scratch.WaitTimeout)
	defer cancel()
	if waitFor(ctx, begun); ctx.Err() != nil {
		t.Fatalf("the task has not begun; there are %q", processes(t, k.runs))
	}
	return k
}

// kill ends the manager alone and returns the processes that it left.
func (k *killed) kill() []string {
	k.t.Helper()
	_ = k.cmd.Process.Kill() // It may have been already.
	_ = k.cmd.Wait()
	return processes(k.t, k.runs)
}

// takeOver is the next manager's start, up to where it could run something. It returns
// what that logs.
func (k *killed) takeOver() (lines []string) {
	k.t.Helper()
	root, _, err := process.TakeOver(k.runs, funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	if err != nil {
		k.t.Fatal(err)
	}
	if left := processes(k.t, k.runs); len(left) > 0 {
		k.t.Errorf("processes are left: %q", left)
	}
	if err := root.Close(); err != nil {
		k.t.Error(err)
	}
	return lines
}

// all sleeps in a background job of a shell that ignores TERM, beside an
// asynchronous task and a daemon.
const all = `
- name: Begin
  ansible.builtin.command: sleep 3600
  async: 7200
  poll: 0
- name: Leave a daemon
  ansible.builtin.shell: setsid bash -c 'trap "" TERM; exec sleep 3600' >/dev/null 2>&1 </dev/null &
- name: Sleep
  ansible.builtin.shell: |
    trap '' TERM
    touch '{{ begun }}'
    sleep 3600 & wait
    sleep 3600
`

// A run lives on when its manager alone is killed outside of a container. The
// next manager of the run directory ends it before it runs anything, and only then
// removes what the run worked in.
func TestTheNextManagerEndsWhatAKilledOneLeft(t *testing.T) {
	k := startManager(t, all)
	if left := k.kill(); len(left) < 7 {
		t.Fatalf("got processes %q: the test shows less than it should", left)
	}
	if lines := k.takeOver(); len(lines) != 1 || !strings.Contains(lines[0], `"count"=`) {
		t.Errorf("got log %q, want one line that says how many were ended", lines)
	}
	(&tidy{t: t, Bench: &bench.Bench{Runs: k.runs}}).nothingLeft(uid)
}

package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/proctree"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/ansible/runner/guard"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// The test binary plays the manager and its guard.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == guard.Command {
		if err := guard.Serve(os.Args[2:]); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	if os.Getenv("MANAGER_OF") != "" {
		manager()
		os.Exit(0)
	}
	code := m.Run()
	if err := shared.close(); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// manager runs the role "content" as the real manager would, and prints what came
// of it. With LEASE it has a lease that is not renewed.
func manager() {
	root, owner, err := runner.TakeOver(os.Getenv("MANAGER_OF"), logr.Discard())
	if err != nil {
		panic(err)
	}
	_ = owner.Group() // Without control groups other ways have to do.
	g, err := guard.Start(owner, logr.Discard())
	if err != nil {
		panic(err)
	}
	content := os.Getenv("CONTENT")
	if os.Getenv("LEASE") != "" {
		go lease(g, content)
	}
	r := &runner.Runner{
		Root: root, Owner: owner, RunContext: g.Context, SkipFacts: true,
		Binary: os.Getenv("RUNNER"), Python: os.Getenv("PYTHON"), Env: managerEnv(),
	}
	result := r.Run(context.Background(), runner.Spec{
		UID: "0b2e8f6a-uid", ID: "run-1", Role: "content", RolesPath: filepath.Join(content, "roles"), ExtraVars: []byte("\t\n{}"),
	}, func(jobevent.Event) {})
	fmt.Println(result.Outcome.Verdict)
	if err := errors.Join(g.Close(), owner.Close(), root.Close()); err != nil {
		panic(err)
	}
}

// lease lets the run go on for a second from when its task has begun.
func lease(g *guard.Guard, content string) {
	waitFor(context.Background(), filepath.Join(content, "begun"))
	now := proctree.Now()
	g.Extend(now+time.Second, now+3*time.Second)
	if err := os.WriteFile(filepath.Join(content, "leased"), nil, 0o600); err != nil {
		panic(err)
	}
}

// killed is a manager in a process of its own, in the middle of a run.
type killed struct {
	t       *testing.T
	runs    string
	content string
	cmd     *exec.Cmd
	out     strings.Builder
	done    chan struct{}
}

// startManager returns when the role has made the file that {{ begun }} stands
// for in its tasks.
func startManager(t *testing.T, tasks string, env ...string) *killed {
	t.Helper()
	k := &killed{t: t, runs: filepath.Join(scratch.Short(t), "runs"), content: t.TempDir(), done: make(chan struct{})}
	begun := filepath.Join(k.content, "begun")
	scratch.Write(t, k.content, map[string]string{"roles/content/tasks/main.yml": strings.ReplaceAll(tasks, "{{ begun }}", begun)})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	python := environment(t)
	k.cmd = exec.Command(self)
	k.cmd.Env = append(os.Environ(), "MANAGER_OF="+k.runs, "CONTENT="+k.content, "RUNNER="+python.Runner, "PYTHON="+python.Python)
	k.cmd.Env = append(k.cmd.Env, env...)
	k.cmd.Stdout, k.cmd.Stderr = &k.out, os.Stderr
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(k.done)
		_ = k.cmd.Wait() // Most are killed.
	}()
	t.Cleanup(func() {
		_ = k.cmd.Process.Kill() // It may have been already.
		<-k.done
		k.eventually("nothing of the manager is left", func() bool { return len(k.processes()) == 0 && len(k.guards()) == 0 })
	})
	k.eventually("the task has begun", func() bool {
		_, err := os.Stat(begun)
		return err == nil
	})
	return k
}

func (k *killed) eventually(what string, holds func() bool) {
	k.t.Helper()
	const limit = time.Minute // for a machine that has much else to do
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			k.t.Fatalf("%s: not after %v; there are %q", what, limit, k.processes())
		}
	}
}

// processes lists those that name the run directory or the content in their
// command line or environment. The manager and its guard are not among them.
func (k *killed) processes() []string {
	k.t.Helper()
	return slices.DeleteFunc(processes(k.t, k.runs, k.content), func(cmdline string) bool {
		return strings.Contains(cmdline, guard.Command) || strings.HasPrefix(cmdline, k.cmd.Path)
	})
}

// guards lists the process ids of the manager's guards.
func (k *killed) guards() []int {
	k.t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		k.t.Fatal(err)
	}
	var found []int
	for _, path := range paths {
		cmdline, _ := os.ReadFile(path) // It may have ended.
		if !strings.Contains(string(cmdline), guard.Command+"\x00"+k.runs+"\x00") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			k.t.Fatal(err)
		}
		found = append(found, pid)
	}
	return found
}

func (k *killed) signal(pid int, s syscall.Signal) {
	k.t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		k.t.Fatal(err)
	}
}

// awaitNothing waits until no process of the run is left and says how long that
// took.
func (k *killed) awaitNothing() {
	k.t.Helper()
	since := time.Now()
	k.eventually("the run ends", func() bool { return len(k.processes()) == 0 })
	k.t.Logf("the last process ended after %v", time.Since(since).Round(time.Millisecond))
}

// all sleeps in a background job of a shell that ignores TERM, beside an
// asynchronous task and a daemon.
const all = `
- name: Begin
  ansible.builtin.command: sleep 120
  async: 240
  poll: 0
- name: Leave a daemon
  ansible.builtin.shell: setsid bash -c 'trap "" TERM; exec sleep 120' >/dev/null 2>&1 </dev/null &
- name: Sleep
  ansible.builtin.shell: |
    trap '' TERM
    touch '{{ begun }}'
    sleep 120 & wait
    sleep 120
`

// polite sleeps in a module and heeds TERM.
const polite = `
- name: Sleep
  ansible.builtin.shell: touch '{{ begun }}'; exec sleep 120
`

func TestNothingOfARunOutlivesAKilledManager(t *testing.T) {
	k := startManager(t, all)
	before := k.processes()
	if len(before) < 7 {
		t.Errorf("got processes %q: the test shows less than it should", before)
	}
	k.signal(k.cmd.Process.Pid, syscall.SIGKILL)
	k.awaitNothing()
	k.eventually("the guard ends", func() bool { return len(k.guards()) == 0 })
}

// Nobody is there to end the run; the next manager of the run directory does, and
// only then removes what the run worked in.
func TestTheNextManagerEndsWhatNobodyDid(t *testing.T) {
	k := startManager(t, polite)
	for _, pid := range append(k.guards(), k.cmd.Process.Pid) {
		k.signal(pid, syscall.SIGKILL)
	}
	<-k.done
	k.eventually("the guard ends", func() bool { return len(k.guards()) == 0 })
	if left := k.processes(); len(left) < 3 {
		t.Fatalf("got processes %q without manager and guard: the test shows nothing", left)
	}
	var lines []string
	root, owner, err := runner.TakeOver(k.runs, funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	if left := k.processes(); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], `"count"=`) {
		t.Errorf("got log %q, want one line that says how many were ended", lines)
	}
	(&bench{t: t, runs: k.runs}).nothingLeft("0b2e8f6a-uid")
	if err := errors.Join(owner.Close(), root.Close()); err != nil {
		t.Error(err)
	}
}

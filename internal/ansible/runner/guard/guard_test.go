package guard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/ensign-operator/ensign/internal/ansible/proctree"
)

// limit is for what takes a moment, on a machine that has much else to do.
const limit = time.Minute

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %v", what, limit)
		}
	}
}

func alive(pid int) bool {
	stat := read(fmt.Sprintf("/proc/%d/stat", pid))
	return stat != "" && !strings.HasPrefix(stat[strings.LastIndexByte(stat, ')'):], ") Z")
}

// guards lists the guards of a run directory.
func guards(t *testing.T, dir string) []int {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, path := range paths {
		words := strings.Split(read(path), "\x00")
		if len(words) > 2 && words[1] == Command && words[2] == dir {
			var pid int
			if _, err := fmt.Sscanf(path, "/proc/%d/cmdline", &pid); err != nil {
				t.Fatal(err)
			}
			found = append(found, pid)
		}
	}
	return found
}

// play is a manager in a process of its own.
type play struct {
	t     *testing.T
	dir   string
	ready string
	cmd   *exec.Cmd
}

func newPlay(t *testing.T, files []*os.File, env ...string) *play {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &play{t: t, dir: t.TempDir(), ready: filepath.Join(t.TempDir(), "ready")}
	p.cmd = exec.Command(self)
	p.cmd.Env = append([]string{"FAKE=manager", "READY=" + p.ready, "RUNS=" + p.dir}, env...)
	p.cmd.Stderr, p.cmd.ExtraFiles = os.Stderr, files
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.cmd.Wait() // It is killed.
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // It may have been already.
		<-done
		eventually(t, "the guard goes", func() bool { return len(guards(t, p.dir)) == 0 })
		if strings.Contains(read(p.ready), "panic") {
			t.Error("the manager failed")
		}
	})
	eventually(t, "the manager is ready", func() bool { return p.pid("manager") > 0 })
	return p
}

// pid is the process that said it was ready under this name, 0 if none has.
func (p *play) pid(name string) int {
	for line := range strings.Lines(read(p.ready)) {
		var pid int
		if n, err := fmt.Sscanf(line, name+" %d\n", &pid); n == 1 && err == nil {
			return pid
		}
	}
	return 0
}

func (p *play) signal(pid int, s syscall.Signal) {
	p.t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		p.t.Fatal(err)
	}
}

func TestTheRunsOfAKilledManagerEnd(t *testing.T) {
	for name, env := range map[string][]string{
		"a run that heeds TERM":                      {"RUN=polite"},
		"a run that ignores TERM":                    {"RUN=stubborn"},
		"a run that ignores TERM in a control group": {"RUN=stubborn", "GROUP=yes"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, nil, env...)
			run := p.pid(strings.TrimPrefix(env[0], "RUN="))
			p.signal(p.cmd.Process.Pid, syscall.SIGKILL)
			eventually(t, "the run ends", func() bool { return !alive(run) })
			if polite := env[0] == "RUN=polite"; polite != (p.pid("told") == run) {
				t.Errorf("got ready processes %q", read(p.ready))
			}
			eventually(t, "the guard ends", func() bool { return len(guards(t, p.dir)) == 0 })
		})
	}
}

// What stops programs politely, at the terminal or for a whole group, does not
// stop a guard: it goes after its manager.
// ignores reports whether a process has come to ignore a signal. A guard does so last
// of all with SIGTSTP, shortly after its start.
func ignores(t *testing.T, pid int, s syscall.Signal) bool {
	t.Helper()
	for line := range strings.Lines(read(fmt.Sprintf("/proc/%d/status", pid))) {
		if mask, found := strings.CutPrefix(line, "SigIgn:"); found {
			set, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return set>>(s-1)&1 == 1
		}
	}
	return false
}

func TestAGuardOutlivesSignals(t *testing.T) {
	p := newPlay(t, nil, "RUN=polite")
	guard := guards(t, p.dir)
	if len(guard) != 1 {
		t.Fatalf("got guards %v, want one", guard)
	}
	eventually(t, "the guard ignores signals", func() bool { return ignores(t, guard[0], syscall.SIGTSTP) })
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE, syscall.SIGTSTP} {
		p.signal(guard[0], s)
	}
	run := p.pid("polite")
	p.signal(-p.cmd.Process.Pid, syscall.SIGKILL) // its process group
	eventually(t, "the run ends", func() bool { return !alive(run) })
}

// The run directory's lock must be free for the next manager.
func TestAGuardHoldsNoFileOfTheManager(t *testing.T) {
	secret, err := os.Create(filepath.Join(t.TempDir(), "secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	// The manager gets it like what a careless parent leaves open.
	p := newPlay(t, []*os.File{secret}, "RUN=polite")
	if got, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/3", p.cmd.Process.Pid)); err != nil || got != secret.Name() {
		t.Fatalf("the manager has file %q (error %v): the test shows nothing", got, err)
	}
	guard := guards(t, p.dir)[0]
	dir := fmt.Sprintf("/proc/%d/fd", guard)
	var names []string
	eventually(t, "it holds the null device, its pipe and its timer alone", func() bool {
		names = nil
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			name, _ := os.Readlink(filepath.Join(dir, entry.Name())) // It may be closed meanwhile.
			if !strings.HasPrefix(name, "pipe:") && !strings.HasPrefix(name, "anon_inode:") && !strings.HasPrefix(name, "/sys/fs/cgroup/") && name != "/dev/null" {
				names = append(names, name)
			}
		}
		return len(names) == 0
	})
	if cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", guard)); err != nil || cwd != "/" {
		t.Errorf("got working directory %q (error %v)", cwd, err)
	}
}

// A manager that is frozen can't end its runs; that its lease runs out does not
// wait for it.
func TestTheDeadlineHoldsForAFrozenManager(t *testing.T) {
	for name, test := range map[string]struct {
		run  string
		kill string // after so many milliseconds: what heeds TERM gets its time on a busy machine too
		told bool
	}{
		"a run that heeds TERM":   {"polite", "50000", true},
		"a run that ignores TERM": {"stubborn", "2000", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, nil, "RUN="+test.run, "TERM_IN=1500", "KILL_IN="+test.kill)
			run := p.pid(test.run)
			p.signal(p.cmd.Process.Pid, syscall.SIGSTOP)
			eventually(t, "the run ends", func() bool { return !alive(run) })
			if got := p.pid("told") == run; got != test.told {
				t.Errorf("got a run that was told to end: %t, want %t", got, test.told)
			}
			if len(guards(t, p.dir)) != 1 || !alive(p.cmd.Process.Pid) {
				t.Error("the guard or its manager is gone")
			}
		})
	}
}

// bench is a guard of this process, with a log.
type bench struct {
	*Guard
	t     *testing.T
	owner *proctree.Owner
	ready string

	mu  sync.Mutex
	log []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, owner: proctree.NewOwner(t.TempDir(), rand.Text()), ready: filepath.Join(t.TempDir(), "ready")}
	var err error
	if b.Guard, err = Start(b.owner, funcr.New(b.line, funcr.Options{})); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) line(_, args string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, args)
}

func (b *bench) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.log...)
}

func (b *bench) close() {
	b.t.Helper()
	if err := b.Close(); err != nil {
		b.t.Error(err)
	}
	if left := guards(b.t, b.owner.Dir()); len(left) > 0 {
		b.t.Errorf("guards are left: %v", left)
	}
}

// run starts a process of a run that the owner doesn't wait for.
func (b *bench) run(fake string) *exec.Cmd {
	b.t.Helper()
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append([]string{"FAKE=" + fake, "READY=" + b.ready}, b.owner.Environ()...)
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // It is killed.
	}()
	b.t.Cleanup(func() {
		_ = cmd.Process.Kill() // It may have been already.
		<-done
	})
	eventually(b.t, "the process is ready", func() bool { return strings.Contains(read(b.ready), fmt.Sprint(cmd.Process.Pid)) })
	return cmd
}

func TestAnOrderlyEndLeavesNothing(t *testing.T) {
	b := newBench(t)
	b.close()
	if lines := b.lines(); len(lines) > 0 {
		t.Errorf("got log %q", lines)
	}
	b = newBench(t)
	run := b.run("polite")
	b.close()
	if alive(run.Process.Pid) {
		t.Error("a process that the manager left is still there")
	}
}

func TestAGuardThatDiesIsReplaced(t *testing.T) {
	b := newBench(t)
	defer b.close()
	run := b.run("stubborn")
	first := guards(t, b.owner.Dir())[0]
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// The deadline that no guard heard of.
	b.Extend(proctree.Now(), proctree.Now())
	eventually(t, "another guard ends the run", func() bool { return !alive(run.Process.Pid) })
	if second := guards(t, b.owner.Dir()); len(second) != 1 || second[0] == first {
		t.Errorf("got guards %v after %d", second, first)
	}
	if lines := b.lines(); len(lines) != 1 || !strings.Contains(lines[0], "killed") {
		t.Errorf("got log %q, want one line that says how the guard died", lines)
	}
}

// A guard that is frozen takes up no orders. The manager neither waits for it nor
// trusts it.
func TestAGuardThatDoesNotListenIsReplaced(t *testing.T) {
	b := newBench(t)
	defer b.close()
	first := guards(t, b.owner.Dir())[0]
	if err := syscall.Kill(first, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	const orders = 10_000 // more than a pipe takes
	for range orders {
		b.Extend(proctree.Now()+time.Hour, proctree.Now()+time.Hour)
	}
	eventually(t, "another guard takes its place", func() bool {
		now := guards(t, b.owner.Dir())
		return len(now) == 1 && now[0] != first
	})
}

func TestADeadlineMovesWithEachRenewal(t *testing.T) {
	b := newBench(t)
	defer b.close()
	run := b.run("polite")
	const renewals, ahead = 30, 5 * time.Second
	permit := b.Context()
	for range renewals {
		b.Extend(proctree.Now()+ahead, proctree.Now()+ahead)
		time.Sleep(5 * time.Millisecond)
	}
	b.Extend(0, 0) // none any more
	if b.Context() != permit || permit.Err() != nil || !alive(run.Process.Pid) {
		t.Error("a deadline that was renewed in time had an effect")
	}
}

// What runs when a deadline passes is over. What is started under the next one is
// not.
func TestAPermitEndsWithItsDeadline(t *testing.T) {
	b := newBench(t)
	defer b.close()
	old := b.run("stubborn")
	permit := b.Context()
	b.Extend(proctree.Now()+time.Millisecond, proctree.Now()+time.Hour)
	time.Sleep(2 * time.Millisecond)
	if b.Context() != permit || !errors.Is(context.Cause(permit), ErrDeadline) {
		t.Errorf("got a permit that ended with %v", context.Cause(permit))
	}
	b.Extend(proctree.Now()+time.Hour, proctree.Now()+time.Hour)
	if b.Context() == permit || b.Context().Err() != nil {
		t.Error("there is no new permit")
	}
	young := b.run("polite")
	time.Sleep(50 * time.Millisecond)
	if !alive(old.Process.Pid) || !alive(young.Process.Pid) {
		t.Error("the guard did not heed the new deadline")
	}
	if err := old.Process.Kill(); err != nil {
		t.Error(err)
	}
}

// The manager that was late finds out of it by renewing, too.
func TestARenewalThatIsLateEndsThePermit(t *testing.T) {
	b := newBench(t)
	defer b.close()
	permit := b.Context()
	b.Extend(proctree.Now(), proctree.Now()+time.Hour)
	b.Extend(proctree.Now()+time.Hour, proctree.Now()+time.Hour)
	if !errors.Is(context.Cause(permit), ErrDeadline) || b.Context().Err() != nil {
		t.Errorf("got a permit that ended with %v, and after it one with %v", context.Cause(permit), b.Context().Err())
	}
}

func TestServeIsNotForPeople(t *testing.T) {
	for _, args := range [][]string{nil, {"/dir"}, {"/dir", "x", "y"}} {
		if err := Serve(args); err == nil {
			t.Errorf("%q: got no error", args)
		}
	}
}

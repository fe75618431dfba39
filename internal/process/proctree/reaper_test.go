package proctree

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// scene starts processes that belong to runs, or do not.
type scene struct {
	t   *testing.T
	dir string
}

func newScene(t *testing.T) scene { return scene{t, t.TempDir()} }

func (s scene) command(fake string, env ...string) *exec.Cmd {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append([]string{"FAKE=" + fake, "READY=" + filepath.Join(s.dir, "ready")}, env...)
	return cmd
}

// start starts a fake that nothing but its environment ties to a Reaper.
func (s scene) start(fake string, env ...string) *exec.Cmd {
	s.t.Helper()
	cmd := s.command(fake, env...)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // It is killed.
	}()
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill() // It may have ended.
		<-done
	})
	return cmd
}

// ready returns the processes that are where they should be, once there are count.
func (s scene) ready(count int) []int {
	s.t.Helper()
	for {
		content, _ := os.ReadFile(filepath.Join(s.dir, "ready")) // There is none yet.
		if lines := strings.Fields(string(content)); len(lines) >= count {
			return s.numbers(lines)
		}
		time.Sleep(time.Millisecond)
	}
}

func (s scene) numbers(lines []string) []int {
	s.t.Helper()
	var numbers []int
	for _, line := range lines {
		n, err := strconv.Atoi(line)
		if err != nil {
			s.t.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	return numbers
}

func alive(pid int) bool {
	p, err := readProc(pid)
	return err == nil && !p.zombie
}

// reaper makes one whose instance is found by nobody else's tests.
func (s scene) reaper(dir, name string) *Reaper { return NewReaper(dir, name+"-"+rand.Text()) }

func TestEndAllEndsWhatAnyOwnerLeft(t *testing.T) {
	s := newScene(t)
	dir, other := t.TempDir(), t.TempDir()
	before, now, elsewhere := s.reaper(dir, "before"), s.reaper(dir, "now"), s.reaper(other, "before")
	gone := []*exec.Cmd{
		s.start("sleep", before.Environ()...),
		s.start("stubborn", before.Environ()...),
		s.start("parent", before.Environ()...), // with a child
		s.start("sleep", now.Environ()...),
	}
	stays := []*exec.Cmd{
		s.start("sleep", elsewhere.Environ()...),
		s.start("sleep", "X"+rootVariable+"="+dir, rootVariable+"="+dir+"/sub", "TEXT= "+rootVariable+"="+dir),
	}
	pids := s.ready(7)
	if got := now.EndAll(200 * time.Millisecond); got != (Ended{Count: 5}) {
		t.Errorf("got %+v, want 5 processes ended", got)
	}
	for _, cmd := range stays {
		if !alive(cmd.Process.Pid) {
			t.Error("a process of somebody else was ended")
		}
		pids = slices.DeleteFunc(pids, func(pid int) bool { return pid == cmd.Process.Pid })
	}
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
	if len(pids) != len(gone)+1 {
		t.Errorf("got %d processes to end, want %d: the test shows less than it should", len(pids), len(gone)+1)
	}
	if got := now.EndAll(0); got != (Ended{}) {
		t.Errorf("got %+v when nothing was left", got)
	}
}

// What another Reaper of the directory runs is not its own.
func TestEndOwnSparesASuccessor(t *testing.T) {
	s := newScene(t)
	dir := t.TempDir()
	mine, successor := s.reaper(dir, "mine"), s.reaper(dir, "successor")
	old, young := s.start("stubborn", mine.Environ()...), s.start("sleep", successor.Environ()...)
	s.ready(2)
	if got := mine.EndOwn(0); got != (Ended{Count: 1}) {
		t.Errorf("got %+v, want one process ended", got)
	}
	if alive(old.Process.Pid) || !alive(young.Process.Pid) {
		t.Error("the wrong one was ended")
	}
}

// A process that is started between the reading of the process table and the end of its
// parent has neither a parent nor a mark. (After a TERM the parent may still start one before
// it ends; that one is a daemon without a mark.)
func TestNothingIsLeftOfAProcessThatStartsOthersAllTheTime(t *testing.T) {
	const times = 5
	for range times {
		s := newScene(t)
		o := s.reaper(t.TempDir(), "mine")
		s.start("breeder", o.Environ()...)
		s.ready(2)
		if got := o.EndOwn(0); got.Count < 2 || got.Left > 0 {
			t.Errorf("got %+v, want a process and its children ended", got)
		}
		for _, p := range readTable() {
			if !p.zombie && environHasAny(p.pid, []string{"READY=" + filepath.Join(s.dir, "ready")}) {
				t.Errorf("process %d is left", p.pid)
				_ = p.send(syscall.SIGKILL)
			}
		}
	}
}

// Containers that share the process table but not the file system may have different run
// directories at the same path.
func TestEndAllSparesTheContainerNextDoor(t *testing.T) {
	s := newScene(t)
	dir, other := t.TempDir(), t.TempDir()
	o := s.reaper(dir, "mine")
	cmd := s.command("neighbour", append(o.Environ(), "DIR="+dir, "OTHER="+other)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if id := os.Geteuid(); id != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	if err := cmd.Start(); err != nil {
		t.Logf("no name spaces here: %v", err)
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // It is killed.
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // It may have ended.
		<-done
	})
	s.ready(1)
	if got := o.EndAll(0); got != (Ended{}) || !alive(cmd.Process.Pid) {
		t.Errorf("got %+v: the neighbour's process was ended", got)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	// Where ours is gone there is nothing to compare with; the mark has to do.
	if got := o.EndAll(0); got != (Ended{Count: 1}) {
		t.Errorf("got %+v without a directory", got)
	}
}

// The process that started the manager may have its marks, for example a shell.
func TestTheHuntSparesItself(t *testing.T) {
	o := NewReaper(t.TempDir(), rand.Text())
	f := o.processes("FAKE=")
	if !f.spared[os.Getpid()] || !f.spared[os.Getppid()] {
		t.Errorf("got spared processes %v, want this one and its parent among them", f.spared)
	}
	f.entries = []string{"PATH=" + os.Getenv("PATH")}
	if slices.ContainsFunc(f.liveMembers(), func(p proc) bool { return p.pid == os.Getpid() || p.pid == os.Getppid() }) {
		t.Error("the hunter or its parent is a member")
	}
}

// Other code waits for the manager's own children, so reap must leave these zombies.
func TestReapTakesOnlyWhatRunsLeft(t *testing.T) {
	s := newScene(t)
	cmd := s.command("reaper")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(string(out)); !slices.Equal(got, []string{"true", "true"}) {
		t.Errorf("got %q, want two zombies left, which are the manager's own children", got)
	}
}

// Starting processes hold descriptors. If each of them waited for one more descriptor, none
// would ever get it.
func TestStartDoesNotWaitForADescriptor(t *testing.T) {
	o := &Reaper{}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	started := make(chan error, 1)
	go func() {
		_, err := o.Start(exec.Command("/bin/true"), 7)
		started <- err
	}()
	var err error
	select {
	case err = <-started:
	case <-time.After(scratch.WaitTimeout):
	}
	if restored := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); restored != nil {
		t.Fatal(restored)
	}
	if !errors.Is(err, syscall.EMFILE) {
		t.Errorf("got error %v, want one at once that says what is lacking", err)
	}
}

func TestAdoptFindsTheProcessesOfARunThatSomebodyElseStarted(t *testing.T) {
	s := newScene(t)
	nonce := someNonce()
	mark := runMark(nonce)
	before := s.start("sleep", mark)
	s.ready(1)
	// The kernel counts in ticks when processes start.
	var o Reaper
	started := func(cmd *exec.Cmd) uint64 {
		p, err := readProc(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		return p.started
	}
	for probe := s.start("nothing"); started(probe) == started(before); probe = s.start("nothing") {
		<-time.After(time.Millisecond)
	}
	leader := s.start("parent") // with a child; neither has the mark any more
	s.start("stubborn", mark)
	s.start("sleep", runMark(nonce+1))
	pids := s.ready(5)
	waited := false
	run := o.Adopt(Leader{PID: leader.Process.Pid, Wait: func() int { waited = true; return -15 }}, nonce)
	if got := run.End(200 * time.Millisecond); got != (Ended{Count: 3}) {
		t.Errorf("got %+v, want the leader, its child and what has the mark of the run ended", got)
	}
	if left := slices.DeleteFunc(pids, func(pid int) bool { return !alive(pid) }); len(left) != 2 || !alive(before.Process.Pid) {
		t.Errorf("%v are left, want what is older than the leader, and what is of another run", left)
	}
	if code := run.Wait(); code != -15 || !waited {
		t.Errorf("got exit code %d", code)
	}
}

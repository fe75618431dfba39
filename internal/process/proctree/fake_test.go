package proctree

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// The test binary acts as the processes of runs if FAKE is set.
func TestMain(m *testing.M) {
	if name := os.Getenv("FAKE"); name != "" {
		fakes()[name]()
		scratch.Leave(0)
	}
	os.Exit(m.Run())
}

func fakes() map[string]func() {
	return map[string]func(){
		"nothing":  func() {},
		"sleep":    func() { ready(); time.Sleep(10 * time.Minute) },
		"stubborn": func() { signal.Ignore(syscall.SIGTERM); ready(); time.Sleep(10 * time.Minute) },
		// A child without a mark.
		"parent":    func() { spawn("stubborn"); ready(); time.Sleep(10 * time.Minute) },
		"reaper":    reaper,
		"neighbour": neighbour,
		"orphan":    func() { spawn("nothing") },
		"crowded":   crowded,
		"breeder": func() {
			ready()
			for {
				spawn("sleep")
			}
		},
	}
}

// ready tells the test that the process has reached its waiting point.
func ready() { scratch.Note("READY", os.Getpid()) }

// spawn starts another fake in a session of its own, without a mark of a run in its
// environment and without waiting for it.
func spawn(name string) {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self)
	cmd.Env = []string{"FAKE=" + name, "READY=" + os.Getenv("READY")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
}

// neighbour is a process that sees another directory at the path DIR, as in another
// container.
func neighbour() {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		panic(err)
	}
	if err := unix.Mount(os.Getenv("OTHER"), os.Getenv("DIR"), "", unix.MS_BIND, ""); err != nil {
		panic(err)
	}
	ready()
	time.Sleep(10 * time.Minute)
}

// reaper runs the fake "orphan" as a manager that is the first process of its container. It
// prints for each zombie that is left whether it is reaper's own child.
func reaper() {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	var o Reaper
	// One of them is in the manager's session, the other one, a server, is not.
	own, server := exec.Command("/bin/true"), exec.Command("/bin/true")
	server.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := own.Start(); err != nil {
		panic(err)
	}
	if err := o.Keep(server); err != nil {
		panic(err)
	}
	spawn("orphan")
	// Four end: its own two children, the orphan, and the orphan's child, which it adopts.
	for len(zombies()) < 4 {
		time.Sleep(time.Millisecond)
	}
	run := o.Adopt(Leader{PID: own.Process.Pid}, 1)
	run.End(0)
	run.Close()
	for _, z := range zombies() {
		fmt.Println(z.pid == own.Process.Pid || z.pid == server.Process.Pid)
	}
	for _, cmd := range []*exec.Cmd{own, server} {
		if err := cmd.Wait(); err != nil {
			panic(err)
		}
	}
}

// crowded ends a run while it cannot open files for some time. It prints how many processes
// it found and how many are left.
func crowded() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self)
	cmd.Env = []string{"FAKE=parent", "READY=" + os.Getenv("READY")}
	nonce := someNonce()
	cmd.Env = append(cmd.Env, runMark(nonce))
	var o Reaper
	run, err := o.Start(cmd, nonce)
	if err != nil {
		panic(err)
	}
	exited := make(chan int)
	go func() { exited <- run.Wait() }()
	for content := []byte{}; bytes.Count(content, []byte("\n")) < 2; content, _ = os.ReadFile(os.Getenv("READY")) {
		time.Sleep(time.Millisecond)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 64, Max: 64}); err != nil {
		panic(err)
	}
	var taken []*os.File
	for err == nil {
		var f *os.File
		if f, err = os.Open("/dev/null"); err == nil {
			taken = append(taken, f)
		}
	}
	time.AfterFunc(200*time.Millisecond, func() { _ = errors.Join(taken[0].Close(), taken[1].Close()) })
	ended := run.End(2 * time.Second) // Enough for the parent to end by TERM on a busy machine.
	fmt.Println(ended.Count, ended.Left, <-exited)
}

// zombies returns the children of this process that nobody has waited for.
func zombies() []proc {
	var found []proc
	for _, p := range readTable() {
		if p.zombie && p.parent == os.Getpid() {
			found = append(found, p)
		}
	}
	return found
}

// someNonce is one that no other test has at the same time.
func someNonce() int64 { return int64(os.Getpid())<<32 | time.Now().UnixNano()&math.MaxUint32 }

package runner

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Between two looks at the process table.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// tree is all processes of one run: the leader, whatever carries the run's mark
// in its environment, and the descendants of both. A process that was seen once
// stays in it when its parent ends.
type tree struct {
	leader identity
	mark   []byte
	known  map[identity]bool
}

// identity names a process for good: the kernel uses a pid again.
type identity struct {
	pid     int
	started uint64 // in the kernel's clock ticks
}

// proc is one line of the process table.
type proc struct {
	identity
	parent, session int
	zombie          bool
}

func newTree(leader int, nonce int64) *tree {
	t := &tree{leader: identity{pid: leader}, mark: fmt.Appendf(nil, "JOB_ID=%d", nonce), known: map[identity]bool{}}
	// The leader has not been waited for yet, so its pid is still its own.
	if p, err := readProc(leader); err == nil {
		t.leader = p.identity
		t.known[t.leader] = true
	}
	return t
}

// end ends all processes of the tree and returns when none is left: TERM at
// once, KILL for what is there after grace. Processes that may not be signalled
// are given up.
func (t *tree) end(grace time.Duration) {
	deadline := time.Now().Add(grace)
	told := map[identity]bool{}
	hopeless := map[identity]bool{}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		signal, now := syscall.SIGTERM, time.Now()
		if now.After(deadline) {
			signal = syscall.SIGKILL
		}
		left := 0
		for _, p := range t.live() {
			if hopeless[p] {
				continue
			}
			left++
			if signal == syscall.SIGTERM && told[p] {
				continue
			}
			told[p] = true
			hopeless[p] = errors.Is(p.send(signal), os.ErrPermission)
		}
		if left == 0 {
			return
		}
		<-time.After(pause)
	}
}

// live lists the processes of the tree that are not zombies.
func (t *tree) live() []identity {
	table := readTable()
	children := map[int][]proc{}
	for _, p := range table {
		children[p.parent] = append(children[p.parent], p)
	}
	var members []identity
	seen := map[int]bool{}
	var visit func(p proc)
	visit = func(p proc) {
		if seen[p.pid] {
			return
		}
		seen[p.pid] = true
		if !p.zombie {
			members = append(members, p.identity)
		}
		for _, child := range children[p.pid] {
			visit(child)
		}
	}
	for _, p := range table {
		if t.known[p.identity] || p.started >= t.leader.started && t.marked(p.pid) {
			visit(p)
		}
	}
	for _, m := range members {
		t.known[m] = true
	}
	return members
}

// marked is true for a process that was started with the run's nonce.
func (t *tree) marked(pid int) bool {
	environ, err := os.ReadFile(procPath(pid, "environ"))
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if bytes.Equal(entry, t.mark) {
			return true
		}
	}
	return false
}

// send signals exactly this process. The handle is opened first and the process
// looked at again then, so that another one with its pid is never hit.
func (i identity) send(s syscall.Signal) error {
	handle, err := os.FindProcess(i.pid)
	if err != nil {
		return err
	}
	defer func() { _ = handle.Release() }()
	if now, err := readProc(i.pid); err != nil || now.identity != i {
		return os.ErrProcessDone
	}
	return handle.Signal(s)
}

// reap takes the exit status of processes that a run left behind and that became
// children of the manager because it is the first process of its container:
// nobody else will. The manager's own children are left alone: a run's
// processes are never in its session.
func (l *leaders) reap() {
	l.mu.Lock()
	defer l.mu.Unlock()
	self := os.Getpid()
	own, err := readProc(self)
	if err != nil {
		return
	}
	for _, p := range readTable() {
		if p.zombie && p.parent == self && p.session != own.session && !l.pids[p.pid] {
			collect(p.pid)
		}
	}
}

// collect takes the exit status of a zombie. The first thread of a program may be
// one shortly before its last thread, and only then can be waited for; a program
// whose first thread alone has ended is left to the end of another run.
func collect(pid int) {
	const tries, pause = 100, time.Millisecond
	for range tries {
		if got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); got != 0 || err != nil {
			return
		}
		<-time.After(pause)
	}
}

// readTable reads the process table; processes that end meanwhile are left out.
func readTable() []proc {
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var table []proc
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			continue
		}
		if p, err := readProc(pid); err == nil {
			table = append(table, p)
		}
	}
	return table
}

// readProc reads /proc/PID/stat, described in proc_pid_stat(5). The second field
// is the program's name in parentheses, which may itself hold blanks and
// parentheses.
func readProc(pid int) (proc, error) {
	stat, err := os.ReadFile(procPath(pid, "stat"))
	if err != nil {
		return proc{}, err
	}
	rest := string(stat[bytes.LastIndexByte(stat, ')')+1:])
	fields := strings.Fields(rest)
	const state, ppid, sid, startTime = 0, 1, 3, 19
	if len(fields) <= startTime {
		return proc{}, fmt.Errorf("%q: unexpected format", procPath(pid, "stat"))
	}
	p := proc{identity: identity{pid: pid}, zombie: fields[state] == "Z" || fields[state] == "X"}
	var errs [3]error
	p.parent, errs[0] = strconv.Atoi(fields[ppid])
	p.session, errs[1] = strconv.Atoi(fields[sid])
	p.started, errs[2] = strconv.ParseUint(fields[startTime], 10, 64)
	return p, errors.Join(errs[:]...)
}

func procPath(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

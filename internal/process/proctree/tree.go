package proctree

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Leader is the first process of a run.
type Leader struct {
	PID int
	// Wait waits for the process and returns its exit code, which is negative after a signal: -9
	// after SIGKILL. It is called once.
	Wait func() int
}

// Tree is the set of processes of one run.
type Tree struct {
	Leader

	reaper    *Reaper
	processes processes
}

// Start starts cmd as the first process of a run, in a session of its own, so that
// neither a terminal nor a signal to the manager's process group reaches it. Its
// environment must hold JOB_ID with the run's nonce.
func (r *Reaper) Start(cmd *exec.Cmd, nonce int64) (*Tree, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := r.Keep(cmd); err != nil {
		return nil, err
	}
	return r.Adopt(Leader{PID: cmd.Process.Pid, Wait: func() int {
		_ = cmd.Wait() // The exit code says how it ended.
		r.Release(cmd.Process.Pid)
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return -int(status.Signal())
		}
		return cmd.ProcessState.ExitCode()
	}}, nonce), nil
}

// Adopt returns the Tree of a run whose first process another program started, with JOB_ID and the
// run's nonce in its environment. Its number must not be reused before Wait returns.
func (r *Reaper) Adopt(leader Leader, nonce int64) *Tree {
	t := &Tree{
		Leader:    leader,
		reaper:    r,
		processes: processes{entries: []string{runMark(nonce)}, spared: map[int]bool{os.Getpid(): true}, known: map[identity]bool{}},
	}
	// The kernel does not reuse the pid before Wait.
	if p, err := readProc(leader.PID); err == nil {
		t.processes.since = p.started
		t.processes.known[p.identity] = true
	}
	return t
}

// Keep starts a process. The caller waits for it, and then calls Release.
func (r *Reaper) Keep(cmd *exec.Cmd) error {
	// The lock prevents reap from seeing the child before it is in children.
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	if r.children == nil {
		r.children = map[int]bool{}
	}
	r.children[cmd.Process.Pid] = true
	return nil
}

// Release is called after the process has been waited for.
func (r *Reaper) Release(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.children, pid)
}

// End sends TERM to all processes of the run, and KILL after grace, and returns when none is
// left or those that are left cannot be ended.
func (t *Tree) End(grace time.Duration) Ended {
	return t.processes.end(grace)
}

// Close takes the exit status of the run's processes that have no other parent. It is called
// after End, and uses the process table that End read last.
func (t *Tree) Close() { t.reaper.reap(t.processes.table) }

// reap takes the exit status of processes that a run left and that became children of the
// manager because it is the first process of its container. Nothing else does. reap spares
// the manager's own children: they are in the manager's session, and processes of runs never
// are.
func (r *Reaper) reap(table []proc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	self := os.Getpid()
	own, err := readProc(self)
	if err != nil {
		return
	}
	for _, p := range table {
		if !p.zombie || p.parent != self || p.session == own.session || r.children[p.pid] {
			continue
		}
		if now, err := readProc(p.pid); err == nil && now.identity == p.identity { // Another run may have been quicker.
			reapZombie(p.pid)
		}
	}
}

// reapZombie takes the exit status of a zombie. A zombie that is the first thread of a
// program can be waited for only after the program's last thread has ended. reapZombie
// waits up to 0.1 s for that; after that the zombie is left until another run ends.
func reapZombie(pid int) {
	const tries, pause = 100, time.Millisecond
	for range tries {
		if got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); got != 0 || err != nil {
			return
		}
		<-time.After(pause)
	}
}

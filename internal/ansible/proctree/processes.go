package proctree

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"time"
)

const (
	// Between two looks at the process table.
	firstPause = 10 * time.Millisecond
	lastPause  = 100 * time.Millisecond
	// stopTimeout is how long members are waited for to stop. One that the kernel holds
	// stops late, and starts no process until then.
	stopTimeout = 100 * time.Millisecond
	// killTimeout is how long a process is waited for after its KILL. What is left
	// then is held by the kernel, and runs no instruction of its own any more.
	killTimeout = 10 * time.Second
)

// processes are all that belong together. One that was seen once stays in
// it when its parent ends.
type processes struct {
	marks  []string     // entries of the environment; one of them makes a member
	since  uint64       // the start of the first member; marks of earlier processes do not count
	spared map[int]bool // no member, whatever it looks like
	// alien tells of a process with a mark that it is no member after all.
	alien func(pid int) bool
	known map[identity]bool
}

// Ended is what came of ending processes.
type Ended struct {
	// Count is how many there were, Left how many of them are still there: those
	// that may not be signalled and those that the kernel holds.
	Count, Left int
}

// end ends all members and returns when none is left: TERM at once, KILL for what
// is there after grace, or at once if that is not positive. Members are stopped before
// they get a signal that they have not got yet.
func (f *processes) end(grace time.Duration) Ended {
	told := signals{}
	begun := time.Now()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		signal, passed := syscall.SIGTERM, time.Since(begun)
		if passed >= grace {
			signal = syscall.SIGKILL
		}
		members := f.live()
		if slices.ContainsFunc(members, func(p proc) bool { return !told.has(p.identity, signal) }) {
			members = f.stop()
		}
		if left := told.send(members, signal); left == 0 || passed >= max(grace, 0)+killTimeout {
			return Ended{Count: len(told), Left: len(members)}
		}
		<-time.After(pause)
	}
}

// signals are what processes have been told, 0 if they may not be told anything.
type signals map[identity]syscall.Signal

// has reports whether the process needs the signal no more: it was told TERM or more,
// or KILL, or may not be told anything.
func (told signals) has(p identity, signal syscall.Signal) bool {
	before, met := told[p]
	return met && (before == 0 || before == signal || signal == syscall.SIGTERM)
}

// send signals the processes, TERM only once, lets those go on that are stopped, and
// returns how many there are that may be signalled.
func (told signals) send(members []proc, signal syscall.Signal) int {
	possible := 0
	for _, p := range members {
		if before, met := told[p.identity]; met && before == 0 {
			continue
		}
		possible++
		if signal == syscall.SIGTERM && told.has(p.identity, signal) {
			continue
		}
		told[p.identity] = signal
		if err := p.send(signal); errors.Is(err, os.ErrPermission) {
			told[p.identity] = 0
		}
	}
	for _, p := range members {
		if p.stopped {
			_ = p.send(syscall.SIGCONT) // It may be gone.
		}
	}
	return possible
}

// stop stops all members, and returns them. One that ran could start a process after the
// process table was read, and be ended by the signal that follows: the new process would
// have no parent by which it is found, and perhaps no mark.
func (f *processes) stop() []proc {
	for begun := time.Now(); ; {
		members := f.live()
		running := slices.DeleteFunc(slices.Clone(members), func(p proc) bool { return p.stopped })
		if len(running) == 0 || time.Since(begun) >= stopTimeout {
			return members
		}
		for _, p := range running {
			_ = p.send(syscall.SIGSTOP) // It may be gone, or another user's.
		}
		<-time.After(time.Millisecond)
	}
}

// live lists the members that are not zombies.
func (f *processes) live() []proc {
	table := readTable()
	children := map[int][]proc{}
	for _, p := range table {
		children[p.parent] = append(children[p.parent], p)
	}
	var members []proc
	seen := map[int]bool{}
	var visit func(p proc)
	visit = func(p proc) {
		if seen[p.pid] || f.spared[p.pid] {
			return
		}
		seen[p.pid] = true
		if !p.zombie {
			members = append(members, p)
		}
		for _, child := range children[p.pid] {
			visit(child)
		}
	}
	for _, p := range table {
		if f.known[p.identity] || f.marked(p) {
			visit(p)
		}
	}
	for _, m := range members {
		f.known[m.identity] = true
	}
	return members
}

func (f *processes) marked(p proc) bool {
	return p.started >= f.since && !p.zombie && hasAny(p.pid, f.marks) && (f.alien == nil || !f.alien(p.pid))
}

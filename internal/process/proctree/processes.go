package proctree

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"time"
)

const (
	// firstInterval is the first interval between two readings of the process table.
	// maxInterval is the longest.
	firstInterval = 10 * time.Millisecond
	maxInterval   = 100 * time.Millisecond
	// stopTimeout is how long the package waits for members to stop. On a busy machine a process
	// may have to wait for a processor to do so.
	stopTimeout = 5 * time.Second
	// killTimeout is how long the package waits for a process after its KILL. A process that
	// is left then is in an uninterruptible system call, and executes no code of its own.
	killTimeout = 10 * time.Second
)

// processes is a set of processes that belong together. A member stays a member when its
// parent ends.
type processes struct {
	entries []string     // processes with one of these environment entries are members
	since   uint64       // when the first member started; earlier processes are not members
	spared  map[int]bool // pids that are never members
	// alien reports that a process with such an entry is not a member. It may be nil.
	alien func(pid int) bool
	known map[identity]bool // the members found so far
	table []proc            // the process table as it was read last
}

// Ended is the result of ending processes.
type Ended struct {
	// Count is the number of processes found. Left is how many of them are left: those that
	// may not be signalled, and those in an uninterruptible system call.
	Count, Left int
}

// end sends TERM to all members, and KILL to those that are left after grace, or at once if
// grace is not positive. It returns when no member is left, or after killTimeout. It stops
// all members before it sends a signal for the first time (stopMembers says why).
func (s *processes) end(grace time.Duration) Ended {
	sent := sentSignals{}
	begun := time.Now()
	for pause := firstInterval; ; pause = min(2*pause, maxInterval) {
		signal, elapsed := syscall.SIGTERM, time.Since(begun)
		if elapsed >= grace {
			signal = syscall.SIGKILL
		}
		members := s.liveMembers()
		if slices.ContainsFunc(members, func(p proc) bool { return !sent.includes(p.identity, signal) }) {
			members = s.stopMembers()
		}
		if left := sent.send(members, signal); left == 0 || elapsed >= max(grace, 0)+killTimeout {
			return Ended{Count: len(sent), Left: len(members)}
		}
		<-time.After(pause)
	}
}

// sentSignals has the last signal sent to each process, 0 if it may not be signalled.
type sentSignals map[identity]syscall.Signal

// includes reports whether the process need not get the signal: it got it, or a stronger
// one, or it may not be signalled.
func (sent sentSignals) includes(p identity, signal syscall.Signal) bool {
	before, met := sent[p]
	return met && (before == 0 || before == signal || signal == syscall.SIGTERM)
}

// send sends the signal to the members, TERM only once, and continues those that are
// stopped. It returns how many members may be signalled.
func (sent sentSignals) send(members []proc, signal syscall.Signal) int {
	possible := 0
	for _, p := range members {
		if before, met := sent[p.identity]; met && before == 0 {
			continue
		}
		possible++
		if signal == syscall.SIGTERM && sent.includes(p.identity, signal) {
			continue
		}
		sent[p.identity] = signal
		if err := p.send(signal); errors.Is(err, os.ErrPermission) {
			sent[p.identity] = 0
		}
	}
	for _, p := range members {
		if p.stopped {
			_ = p.send(syscall.SIGCONT) // It may have ended.
		}
	}
	return possible
}

// stopMembers stops all members and returns them. Otherwise a member could start a process
// after the process table was read, and then end by the signal: the new process would have
// no parent by which it is found, and perhaps none of the environment entries.
//
// A reading in which all members are stopped does not suffice: one of them may have started a
// process after the names of the table were read, and have stopped before its own entry was. The
// next reading shows that process.
//
// A process in an uninterruptible system call stops as soon as that has ended, and one of another
// user may not be stopped: stopMembers waits for neither.
func (s *processes) stopMembers() []proc {
	signaled, alien := map[identity]bool{}, map[identity]bool{}
	allStopped := false
	for begun := time.Now(); ; {
		members := s.liveMembers()
		running := slices.DeleteFunc(slices.Clone(members), func(p proc) bool {
			return p.stopped || alien[p.identity] || p.blocked && signaled[p.identity]
		})
		if len(running) == 0 && allStopped || time.Since(begun) >= stopTimeout {
			return members
		}
		allStopped = len(running) == 0
		for _, p := range running {
			err := p.send(syscall.SIGSTOP) // It may have ended.
			signaled[p.identity], alien[p.identity] = true, errors.Is(err, os.ErrPermission)
		}
		<-time.After(time.Millisecond)
	}
}

// liveMembers returns the members that are not zombies.
func (s *processes) liveMembers() []proc {
	s.table = readTable()
	children := map[int][]proc{}
	for _, p := range s.table {
		children[p.parent] = append(children[p.parent], p)
	}
	var members []proc
	seen := map[int]bool{}
	var visit func(p proc)
	visit = func(p proc) {
		if seen[p.pid] || s.spared[p.pid] {
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
	for _, p := range s.table {
		if s.known[p.identity] || s.hasEntry(p) {
			visit(p)
		}
	}
	for _, m := range members {
		s.known[m.identity] = true
	}
	return members
}

func (s *processes) hasEntry(p proc) bool {
	return p.started >= s.since && !p.zombie && environHasAny(p.pid, s.entries) && (s.alien == nil || !s.alien(p.pid))
}

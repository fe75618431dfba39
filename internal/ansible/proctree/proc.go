package proctree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// identity names a process for good: the kernel uses a pid again.
type identity struct {
	pid     int
	started uint64 // in the kernel's clock ticks
}

// proc is one line of the process table.
type proc struct {
	identity
	parent, session int
	zombie, stopped bool
}

// send signals exactly this process. The handle is opened first and the process
// looked at again then, so that another one with its pid is never hit.
func (i identity) send(s syscall.Signal) error {
	_, err := insist(func() (struct{}, error) { return struct{}{}, i.trySend(s) })
	return err
}

func (i identity) trySend(s syscall.Signal) error {
	handle, err := os.FindProcess(i.pid)
	if err != nil {
		return err
	}
	defer func() { _ = handle.Release() }()
	stat, err := os.ReadFile(procPath(i.pid, "stat"))
	if short(err) {
		return err // The handle must not be held while another file is waited for.
	}
	if now, err := parseStat(i.pid, stat); err != nil || now.identity != i {
		return os.ErrProcessDone
	}
	return handle.Signal(s)
}

// hasAny is true for a process that was started with one of the entries in its
// environment.
func hasAny(pid int, entries []string) bool {
	environ, err := insist(func() ([]byte, error) { return os.ReadFile(procPath(pid, "environ")) })
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if slices.Contains(entries, string(entry)) {
			return true
		}
	}
	return false
}

// insist reads something of /proc, also when this process may open no further file
// at the moment. What can't be read only for that is not gone: a run whose
// processes were taken for gone would go on beside the next one. Files are closed
// again and again, at least by whatever fails for the same reason.
func insist[T any](read func() (T, error)) (T, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		got, err := read()
		if !short(err) {
			return got, err
		}
		<-time.After(pause)
	}
}

// short is true for an error that says nothing of what was to be opened.
func short(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// readTable reads the process table; processes that end meanwhile are left out.
func readTable() []proc {
	entries, err := insist(func() ([]os.DirEntry, error) { return os.ReadDir("/proc") })
	if err != nil {
		return nil
	}
	var table []proc
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
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
	stat, err := insist(func() ([]byte, error) { return os.ReadFile(procPath(pid, "stat")) })
	if err != nil {
		return proc{}, err
	}
	return parseStat(pid, stat)
}

func parseStat(pid int, stat []byte) (proc, error) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const state, ppid, sid, threads, startTime = 0, 1, 3, 17, 19
	if len(fields) <= startTime {
		return proc{}, fmt.Errorf("%q: unexpected format", procPath(pid, "stat"))
	}
	p := proc{identity: identity{pid: pid}}
	// A program whose first thread has ended looks like a zombie while the others
	// are at work.
	p.zombie = fields[state] == "X" || fields[state] == "Z" && (fields[threads] == "0" || fields[threads] == "1")
	p.stopped = fields[state] == "T" || fields[state] == "t"
	var errs [3]error
	p.parent, errs[0] = strconv.Atoi(fields[ppid])
	p.session, errs[1] = strconv.Atoi(fields[sid])
	p.started, errs[2] = strconv.ParseUint(fields[startTime], 10, 64)
	return p, errors.Join(errs[:]...)
}

func procPath(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

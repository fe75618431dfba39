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
	zombie          bool
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

// hasAny is true for a process that was started with one of the entries in its
// environment.
func hasAny(pid int, entries []string) bool {
	environ, err := os.ReadFile(procPath(pid, "environ"))
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
	var errs [3]error
	p.parent, errs[0] = strconv.Atoi(fields[ppid])
	p.session, errs[1] = strconv.Atoi(fields[sid])
	p.started, errs[2] = strconv.ParseUint(fields[startTime], 10, 64)
	return p, errors.Join(errs[:]...)
}

func procPath(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

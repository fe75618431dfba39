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

// execTimeout is how long a process is waited for that the kernel puts a program into.
const execTimeout = time.Second

// identity identifies a process. The pid alone does not, because the kernel reuses it.
type identity struct {
	pid     int
	started uint64 // in the kernel's clock ticks
}

// proc is an entry of the process table.
type proc struct {
	identity
	parent, session int
	zombie, stopped bool
	blocked         bool // in an uninterruptible system call
}

// send signals exactly this process, never another one that got its pid.
func (i identity) send(s syscall.Signal) error {
	_, err := retryShortage(func() (struct{}, error) { return struct{}{}, i.sendOnce(s) })
	return err
}

// sendOnce opens a handle of the process first, and then checks that the pid still belongs
// to it.
func (i identity) sendOnce(s syscall.Signal) error {
	handle, err := os.FindProcess(i.pid)
	if err != nil {
		return err
	}
	defer func() { _ = handle.Release() }()
	stat, err := os.ReadFile(procPath(i.pid, "stat"))
	if isShortage(err) {
		return err // The handle must be closed before waiting for a free descriptor.
	}
	if now, err := parseStat(i.pid, stat); err != nil || now.identity != i {
		return os.ErrProcessDone
	}
	return handle.Signal(s)
}

// environHasAny reports whether the process was started with one of the entries in its
// environment.
func environHasAny(pid int, entries []string) bool {
	environ, err := readEnviron(pid)
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

// readEnviron returns the environment with which the program of a process was started. While
// the kernel puts a new program into a process, there is none for a moment, which may be long
// on a busy machine.
func readEnviron(pid int) ([]byte, error) {
	read := func() ([]byte, error) { return os.ReadFile(procPath(pid, "environ")) }
	environ, err := retryShortage(read)
	if err != nil || len(environ) > 0 {
		return environ, err
	}
	for begun := time.Now(); inExec(pid) && time.Since(begun) < execTimeout; {
		<-time.After(time.Millisecond)
	}
	return retryShortage(read)
}

// inExec reports whether the kernel is putting a program into the process: the process has
// memory, and no place in it for the environment yet. An empty environment has a place.
func inExec(pid int) bool {
	stat, err := retryShortage(func() ([]byte, error) { return os.ReadFile(procPath(pid, "stat")) })
	const memory, environment = 20, 47 // proc_pid_stat(5): vsize, env_start
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return err == nil && len(fields) > environment && fields[memory] != "0" && fields[environment] == "0"
}

// retryShortage calls read, and repeats it while it fails for want of file descriptors or
// memory. Such an error must not look as if the process were gone, or the next run would
// start while processes of this one are left. Descriptors become free again, at least by
// other code that fails for the same reason.
func retryShortage[T any](read func() (T, error)) (T, error) {
	for pause := firstInterval; ; pause = min(2*pause, maxInterval) {
		got, err := read()
		if !isShortage(err) {
			return got, err
		}
		<-time.After(pause)
	}
}

// isShortage reports whether the error is about descriptors or memory, and so says nothing
// about the file that was to be opened.
func isShortage(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// readTable returns the process table without processes that ended while it was read.
func readTable() []proc {
	entries, err := retryShortage(func() ([]os.DirEntry, error) { return os.ReadDir("/proc") })
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

// readProc reads /proc/PID/stat, see proc_pid_stat(5). The second field is the program's
// name in parentheses, which may itself hold blanks and parentheses.
func readProc(pid int) (proc, error) {
	stat, err := retryShortage(func() ([]byte, error) { return os.ReadFile(procPath(pid, "stat")) })
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
	// A program whose first thread has ended looks like a zombie while its other threads run.
	p.zombie = fields[state] == "X" || fields[state] == "Z" && (fields[threads] == "0" || fields[threads] == "1")
	p.stopped = fields[state] == "T" || fields[state] == "t"
	p.blocked = fields[state] == "D"
	var errs [3]error
	p.parent, errs[0] = strconv.Atoi(fields[ppid])
	p.session, errs[1] = strconv.Atoi(fields[sid])
	p.started, errs[2] = strconv.ParseUint(fields[startTime], 10, 64)
	return p, errors.Join(errs[:]...)
}

func procPath(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

package main

import (
	"bytes"
	"errors"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

// Of newer kernels than package syscall knows; they are the same on all processors.
const (
	sysPidfdSendSignal = 424
	sysPidfdOpen       = 434
)

// process is the one that is the program: a handle of it, so that no other process
// that gets its number is hit.
type process struct{ pid, handle int }

// openProcess returns a process that the server has forked: no other may be ended.
func openProcess(pid, server int) (*process, error) {
	handle, _, errno := syscall.Syscall(sysPidfdOpen, uintptr(pid), 0, 0)
	if errno != 0 {
		return nil, errno
	}
	if parent, err := parentOf(pid); err != nil || parent != server || server <= 1 {
		return nil, errors.Join(errNonsense, err)
	}
	return &process{pid: pid, handle: int(handle)}, nil
}

// parentOf reads without package os, which would have a thread wait for the file.
func parentOf(pid int) (int, error) {
	const parent = 1 // of what follows the name
	fd, err := syscall.Open("/proc/"+strconv.Itoa(pid)+"/stat", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = syscall.Close(fd) }() // Nothing was written.
	var stat [512]byte                       // The name, of at most 64 bytes, is near its start.
	n, err := syscall.Read(fd, stat[:])
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat[:n], ')')+1 : n])
	if len(fields) <= parent {
		return 0, errNonsense
	}
	return number(string(fields[parent]))
}

// send sends a signal, if the process is there.
func (p *process) send(s syscall.Signal) bool {
	_, _, errno := syscall.Syscall6(sysPidfdSendSignal, uintptr(p.handle), uintptr(s), 0, 0, 0, 0)
	return errno == 0
}

// kill kills the process with its group, which it leads.
func (p *process) kill() {
	if p.send(0) {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL) // What has left the group is not its.
	}
	p.send(syscall.SIGKILL)
}

// dieOf ends this process by a signal, as the program ended. It returns the exit code
// that a shell has for that, should the signal not do.
func dieOf(s syscall.Signal) int {
	const shell = 128
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}) // The program has dumped its own.
	signal.Reset()
	var action [4]uint64 // SIG_DFL, and nothing else
	// KILL has no action, and needs none.
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action)), 0, unsafe.Sizeof(action[0]), 0, 0) //nolint:dogsled,gosec // The kernel reads it during the call.
	// To this thread: the signal has done its work when the call returns. Another thread
	// would have to come to it first, while this one goes on.
	runtime.LockOSThread()
	_, _, _ = syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(syscall.Getpid()), uintptr(syscall.Gettid()), uintptr(s)) //nolint:dogsled // The process lives on if it fails.
	return shell + int(s)
}

// controls reports whether the standard input is this process' terminal, to be handed
// over to the program. It is unfit for that when it is somebody else's, or when the
// process has another terminal.
func controls() (terminal, fit bool) {
	var session int32
	if ioctl(syscall.TIOCGSID, uintptr(unsafe.Pointer(&session))) == 0 { //nolint:gosec // The kernel writes it during the call.
		return true, int(session) == syscall.Getpid()
	}
	if isTerminal() {
		return true, false
	}
	tty, err := syscall.Open("/dev/tty", syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false, true
	}
	_ = syscall.Close(tty) // It was only looked for.
	return false, false
}

func isTerminal() bool {
	var settings syscall.Termios
	return ioctl(syscall.TCGETS, uintptr(unsafe.Pointer(&settings))) == 0 //nolint:gosec // The kernel writes it during the call.
}

// giveUpTerminal lets another session leader have the terminal. The kernel sends this
// process HUP and CONT for it.
func giveUpTerminal() {
	heeded := !signal.Ignored(syscall.SIGHUP)
	signal.Ignore(syscall.SIGHUP)
	_ = ioctl(syscall.TIOCNOTTY, 0) // The program says what it lacks.
	if heeded {
		signal.Reset(syscall.SIGHUP)
	}
}

// takeTerminal takes it back, if nobody else has it by now.
func takeTerminal() bool { return ioctl(syscall.TIOCSCTTY, 0) == 0 }

func ioctl(command, argument uintptr) syscall.Errno {
	const stdin = 0
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, stdin, command, argument)
	return errno
}

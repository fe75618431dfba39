// Package atstart knows how the process was started, as far as Go changes that before
// main: package syscall raises the limit of open files.
package atstart

import (
	"errors"
	"runtime"
	"unsafe"
)

// resources is how many limits Linux has.
const resources = 16

// Limit is a soft and a hard limit.
type Limit struct{ Soft, Hard uint64 }

// The limits are read before package syscall is initialized, of which this package
// must import nothing: of the packages that are ready for it, the one whose import path
// sorts first is initialized next.
var limits, number = read() //nolint:gochecknoglobals // They must be read before main.

// Limits are the limits, by the number of the resource.
func Limits() ([resources]Limit, error) {
	if number != 0 {
		return limits, errors.New("the limits can't be read")
	}
	return limits, nil
}

func read() (all [resources]Limit, number uintptr) {
	const itself = 0
	call := prlimit()
	if call == 0 {
		return all, 1
	}
	for i := range all {
		if _, _, number := rawSyscall6(call, itself, uintptr(i), 0, uintptr(unsafe.Pointer(&all[i])), 0, 0); number != 0 { //nolint:gosec // The kernel writes it during the call.
			return all, number
		}
	}
	return all, 0
}

// prlimit is the number of the system call; 0 where it is not known.
func prlimit() uintptr {
	switch runtime.GOARCH {
	case "amd64":
		return 302
	case "arm64", "riscv64", "loong64":
		return 261
	case "ppc64le":
		return 325
	case "s390x":
		return 334
	}
	return 0
}

// rawSyscall6 needs no initialization.
//
//go:linkname rawSyscall6 syscall.RawSyscall6
//go:noescape
func rawSyscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2, number uintptr)

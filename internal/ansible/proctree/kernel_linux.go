package proctree

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Now is the time since the machine's start, its sleep included. It differs from
// wall clocks in never being set, and all processes of a machine share it.
func Now() time.Duration {
	var ts unix.Timespec
	// The kernel has had this clock since 2.6.39, and the address is good.
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return time.Duration(ts.Nano())
}

// inGroup lets a process start in the control group of this directory.
func inGroup(attributes *syscall.SysProcAttr, dir *os.File) {
	attributes.UseCgroupFD, attributes.CgroupFD = true, int(dir.Fd())
}

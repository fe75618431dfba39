package proctree

import (
	"os"
	"syscall"
)

// inGroup lets a process start in the control group of this directory.
func inGroup(attributes *syscall.SysProcAttr, dir *os.File) {
	attributes.UseCgroupFD, attributes.CgroupFD = true, int(dir.Fd())
}

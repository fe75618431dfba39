package process

import "syscall"

// attributes give a child its own process group, and let the kernel kill it when
// the thread that started it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

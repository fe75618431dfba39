//go:build unix && !linux

package process

import "syscall"

// attributes give a child its own process group. Only Linux can also tie its
// life to its parent's: elsewhere a killed owner leaves its children behind.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

//go:build !linux

package fence

import (
	"syscall"
	"time"
)

// Now returns the wall clock's time: the portable clock that advances while the machine is
// suspended.
func Now() Instant { return Instant(time.Now().UnixNano()) }

// setUserTimeout does nothing: TCP_USER_TIMEOUT exists on Linux only.
func setUserTimeout(time.Duration) func(network, address string, socket syscall.RawConn) error {
	return nil
}

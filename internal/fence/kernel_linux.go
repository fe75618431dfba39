package fence

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the time by CLOCK_BOOTTIME.
func Now() Instant {
	var now unix.Timespec
	// It cannot fail: Linux has this clock since 2.6.39, and the address is valid.
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	return Instant(now.Nano())
}

// setUserTimeout returns the Control function of a net.Dialer. It makes the kernel drop a
// connection, with its undelivered data, when sent data is not acknowledged within limit.
func setUserTimeout(limit time.Duration) func(network, address string, socket syscall.RawConn) error {
	return func(_, _ string, socket syscall.RawConn) error {
		var err error
		controlErr := socket.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
		})
		if controlErr != nil {
			return controlErr
		}
		return err
	}
}

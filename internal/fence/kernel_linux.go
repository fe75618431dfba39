package fence

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the machine's time. CLOCK_MONOTONIC, which Go's own times have,
// stands still while a machine is suspended.
func Now() Instant {
	var now unix.Timespec
	// The clock is there since Linux 2.6.39, and the address is good.
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	return Instant(now.Nano())
}

// giveUpAfter makes the kernel give a connection up, with all that it holds for
// it, when data stay unacknowledged for so long.
func giveUpAfter(limit time.Duration) func(network, address string, socket syscall.RawConn) error {
	return func(_, _ string, socket syscall.RawConn) error {
		var err error
		refused := socket.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
		})
		if refused != nil {
			return refused
		}
		return err
	}
}

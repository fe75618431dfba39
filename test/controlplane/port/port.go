// Package port reserves TCP ports of 127.0.0.1 for servers that are started
// later, so that any number of them can be started at the same moment. It does
// not listen.
package port

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Reservation is a free port that stays its owner's until Free: the socket is
// bound, so that the kernel hands the port to nobody else, but does not listen,
// so that it takes no connection. The server that listens there must set
// SO_REUSEPORT as well.
type Reservation struct {
	// Number is the port, 1 to 65535.
	Number int
	socket int
}

// Reserve chooses a port.
func Reserve() (_ *Reservation, err error) {
	syscall.ForkLock.RLock() // No child may inherit the socket.
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(socket)
		}
	}()
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return nil, fmt.Errorf("share a port: %w", err)
	}
	if err := unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, fmt.Errorf("bind a port: %w", err)
	}
	address, err := unix.Getsockname(socket)
	if err != nil {
		return nil, fmt.Errorf("read the port's number: %w", err)
	}
	inet, ok := address.(*unix.SockaddrInet4)
	if !ok {
		return nil, fmt.Errorf("unexpected address %T of a port", address)
	}
	return &Reservation{Number: inet.Port, socket: socket}, nil
}

// Free gives the port back. It is called once, after the server has ended.
func (r *Reservation) Free() error {
	if err := unix.Close(r.socket); err != nil {
		return fmt.Errorf("free port %d: %w", r.Number, err)
	}
	return nil
}

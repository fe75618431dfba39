package harness

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"

	"golang.org/x/sys/unix"
)

// FreeAddress returns an address of the loopback interface that nobody listens on, and
// that no other caller is given, in any process, as long as this process lives: who
// listens there begins later. It is below the ports that the kernel gives to those who
// ask for any, as managers do too.
func FreeAddress() (string, error) {
	const first, beyond, tries = 15000, 32768, 1000
	failed := errors.New("no port is free")
	for range tries {
		port := first + rand.IntN(beyond-first) //nolint:gosec // It need not be secret.
		if err := claim(port); err != nil {
			failed = err
			continue
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		listener, err := net.Listen("tcp", address)
		if err == nil {
			return address, listener.Close()
		}
		failed = err
	}
	return "", failed
}

// claim takes a port from all other callers by a socket whose name it is, in the
// abstract name space, of which nothing is left when the process ends. There is nothing
// to be closed before.
func claim(port int) error {
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0) // No child may inherit it.
	if err != nil {
		return fmt.Errorf("claim a port: %w", err)
	}
	if err := unix.Bind(socket, &unix.SockaddrUnix{Name: fmt.Sprintf("@ensign-test-port-%d", port)}); err != nil {
		return errors.Join(fmt.Errorf("claim port %d: %w", port, err), unix.Close(socket))
	}
	return nil
}

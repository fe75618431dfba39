package main

import (
	"errors"
	"strings"
	"syscall"
)

var (
	errRefused = errors.New("the server refused")
	errPeer    = errors.New("the server is another user's")
)

// connection is a connection to a server.
type connection struct {
	fd     int
	buffer []byte // of a line that has not come whole
}

// connect connects to this user's server at the socket.
func connect(socket string) (*connection, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	c := &connection{fd: fd}
	if err := c.open(socket); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *connection) open(socket string) error {
	if err := errors.Join(c.limit(syscall.SO_SNDTIMEO, patience), c.limit(syscall.SO_RCVTIMEO, patience)); err != nil {
		return err
	}
	if err := syscall.Connect(c.fd, &syscall.SockaddrUnix{Name: socket}); err != nil {
		return err
	}
	peer, err := syscall.GetsockoptUcred(c.fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return err
	}
	if int(peer.Uid) != syscall.Geteuid() {
		return errPeer
	}
	return nil
}

func (c *connection) limit(option int, seconds int64) error {
	return syscall.SetsockoptTimeval(c.fd, syscall.SOL_SOCKET, option, &syscall.Timeval{Sec: seconds})
}

func (c *connection) close() {
	_ = syscall.Close(c.fd) // Nothing is left to be told.
}

// prepare sends the request with the standard descriptors, and returns the process
// that is going to be the program.
func (c *connection) prepare(ask []byte) (*process, error) {
	const stdin, stdout, stderr = 0, 1, 2
	rights := syscall.UnixRights(stdin, stdout, stderr)
	if err := syscall.Sendmsg(c.fd, ask[:lengthSize], rights, nil, syscall.MSG_NOSIGNAL); err != nil {
		return nil, err
	}
	for rest := ask[lengthSize:]; len(rest) > 0; {
		n, err := syscall.SendmsgN(c.fd, rest, nil, nil, syscall.MSG_NOSIGNAL)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return nil, err
		}
		rest = rest[n:]
	}
	answer, err := c.line()
	if err != nil {
		return nil, err
	}
	value, ready := strings.CutPrefix(answer, "ready ")
	if !ready {
		return nil, errRefused
	}
	pid, err := number(value)
	if err != nil {
		return nil, err
	}
	return openProcess(pid)
}

// begin lets the program begin. From here on the server may take any time.
func (c *connection) begin() error {
	if err := c.limit(syscall.SO_RCVTIMEO, 0); err != nil {
		return err
	}
	return syscall.Sendmsg(c.fd, []byte{goAhead}, nil, nil, syscall.MSG_NOSIGNAL)
}

// line reads the next line, without its end.
func (c *connection) line() (string, error) {
	for {
		if line, rest, whole := strings.Cut(string(c.buffer), "\n"); whole {
			c.buffer = []byte(rest)
			return line, nil
		}
		var chunk [256]byte
		n, err := syscall.Read(c.fd, chunk[:])
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return "", err
		case n <= 0:
			return "", syscall.ECONNRESET
		}
		c.buffer = append(c.buffer, chunk[:n]...)
	}
}

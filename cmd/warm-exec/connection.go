package main

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"time"
)

// maxLine is longer than any line of a server.
const maxLine = 512

var (
	errRefused  = errors.New("the server refused")
	errPeer     = errors.New("the server is another user's")
	errNonsense = errors.New("the server does not keep to the protocol")
	errLate     = errors.New("the server takes too long")
)

// connection is a connection to a server.
type connection struct {
	fd     int
	server int       // its process
	until  time.Time // when a server must have answered; never if it is zero
	buffer []byte    // of a line that has not come whole
}

// connect connects to this user's server at the socket.
func connect(socket string) (*connection, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	c := &connection{fd: fd, until: time.Now().Add(answerTimeout)}
	if err := c.open(socket); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *connection) open(socket string) error {
	err := c.again(syscall.SO_SNDTIMEO, func() error { return syscall.Connect(c.fd, &syscall.SockaddrUnix{Name: socket}) })
	if err != nil {
		return err
	}
	peer, err := syscall.GetsockoptUcred(c.fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return err
	}
	if int(peer.Uid) != syscall.Geteuid() {
		return errPeer
	}
	c.server = int(peer.Pid)
	return nil
}

// again does something until no signal interrupts it, within the time that is left.
func (c *connection) again(timeout int, do func() error) error {
	for {
		if err := c.limit(timeout); err != nil {
			return err
		}
		if err := do(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// limit lets the next of such operations take the time that is left.
func (c *connection) limit(timeout int) error {
	var left time.Duration
	if !c.until.IsZero() {
		// The kernel takes 0 for ever.
		if left = time.Until(c.until).Round(time.Microsecond); left <= 0 {
			return errLate
		}
	}
	value := syscall.NsecToTimeval(int64(left))
	return syscall.SetsockoptTimeval(c.fd, syscall.SOL_SOCKET, timeout, &value)
}

func (c *connection) close() {
	_ = syscall.Close(c.fd) // Nothing is left to be told.
}

// prepare sends the request, and returns the process that is going to be the program.
func (c *connection) prepare(ask []byte) (*process, error) {
	for len(ask) > 0 {
		sent, err := c.send(ask, nil)
		if err != nil {
			return nil, err
		}
		ask = ask[sent:]
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
	return openProcess(pid, c.server)
}

// begin lets the program begin, with the standard descriptors. From here on the server
// may take any time. With an error the program has not begun, and can't any more.
func (c *connection) begin() error {
	const stdin, stdout, stderr = 0, 1, 2
	c.until = time.Time{}
	_, err := c.send([]byte{goAhead}, syscall.UnixRights(stdin, stdout, stderr))
	return err
}

func (c *connection) send(b, rights []byte) (sent int, err error) {
	err = c.again(syscall.SO_SNDTIMEO, func() error {
		sent, err = syscall.SendmsgN(c.fd, b, rights, nil, syscall.MSG_NOSIGNAL)
		return err
	})
	return sent, err
}

// end reads how the program ended: its exit code or, negative, the signal.
func (c *connection) end() (int, error) {
	const maxCode, maxSignal = 255, 64
	line, err := c.line()
	if err != nil {
		return 0, err
	}
	how, value, _ := strings.Cut(line, " ")
	n, err := number(value)
	switch {
	case err != nil:
		return 0, err
	case how == "exit" && n >= 0 && n <= maxCode:
		return n, nil
	case how == "signal" && n > 0 && n <= maxSignal:
		return -n, nil
	}
	return 0, errNonsense
}

// line reads the next line, without its end.
func (c *connection) line() (string, error) {
	for {
		if line, rest, whole := bytes.Cut(c.buffer, []byte("\n")); whole {
			c.buffer = rest
			return string(line), nil
		}
		if len(c.buffer) > maxLine {
			return "", errNonsense
		}
		var chunk [maxLine]byte
		var n int
		err := c.again(syscall.SO_RCVTIMEO, func() (err error) {
			n, err = syscall.Read(c.fd, chunk[:])
			return err
		})
		if err != nil {
			return "", err
		}
		if n <= 0 {
			return "", syscall.ECONNRESET
		}
		c.buffer = append(c.buffer, chunk[:n]...)
	}
}

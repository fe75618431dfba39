package port

import (
	"context"
	"net"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func address(r *Reservation) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.Number))
}

func TestReservedPortIsNobodyElses(t *testing.T) {
	r, err := Reserve()
	if err != nil {
		t.Fatal(err)
	}
	if l, err := net.Listen("tcp", address(r)); err == nil {
		_ = l.Close()
		t.Errorf("another server could listen on reserved port %d", r.Number)
	}
	if c, err := net.Dial("tcp", address(r)); err == nil {
		_ = c.Close()
		t.Errorf("port %d takes connections before its server listens", r.Number)
	}
	if err := r.Free(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", address(r))
	if err != nil {
		t.Fatalf("the port is not free after Free: %v", err)
	}
	_ = l.Close()
}

func TestServerThatSharesThePortGetsTheConnections(t *testing.T) {
	r, err := Reserve()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Free() }()
	sharing := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return firstError(c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}), &err)
	}}
	l, err := sharing.Listen(context.Background(), "tcp", address(r))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for range 50 { // Were the reservation in the way, some would be refused or hang.
		c, err := net.Dial("tcp", address(r))
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = accepted.Close()
	}
}

func firstError(err error, other *error) error {
	if err != nil {
		return err
	}
	return *other
}

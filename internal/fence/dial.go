package fence

import (
	"context"
	"errors"
	"net"
	"time"
)

// The times with which client-go dials.
const (
	dialTimeout = 30 * time.Second
	keepAlive   = 30 * time.Second
)

// DialFunc connects to an address, as net.Dialer.DialContext does.
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// Dial connects like a net.Dialer. When the fence closes, the connection is reset, and no
// byte is written to it any more. Data that the server has not acknowledged when another
// candidate may lead is not sent again, even if this process is stopped or has ended.
func (f *Fence) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}
	return f.Guard(dialer.DialContext)(ctx, network, address)
}

// Guard returns dial with connections that end as those of Dial do. That unacknowledged data is
// not sent again holds for TCP alone.
func (f *Fence) Guard(dial DialFunc) DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: raw, fence: f}
		if err := errors.Join(f.bound(raw), f.register(c)); err != nil {
			f.unregister(c)
			c.reset()
			return nil, err
		}
		return c, nil
	}
}

// bound makes the kernel drop data that the server does not acknowledge in time.
func (f *Fence) bound(raw net.Conn) error {
	tcp, ok := raw.(*net.TCPConn)
	control := setUserTimeout(f.options.Margin())
	if !ok || control == nil {
		return nil
	}
	socket, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	return control("", "", socket)
}

// conn is a connection that the fence guards.
type conn struct {
	net.Conn
	fence *Fence
}

// Write fails with ErrLost once the fence has closed. On a standby replica it succeeds: a
// standby sends only requests that read.
func (c *conn) Write(b []byte) (int, error) {
	if c.fence.currentState() == closed {
		return 0, &net.OpError{Op: "write", Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: ErrLost}
	}
	return c.Conn.Write(b)
}

func (c *conn) Close() error {
	c.fence.unregister(c)
	return c.Conn.Close()
}

// reset resets the connection, so that the kernel discards data that it has not delivered.
func (c *conn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		// Otherwise the kernel would go on to deliver after the close.
		_ = tcp.SetLinger(0)
	}
	_ = c.Conn.Close()
}

type connSet map[*conn]bool

func (all connSet) resetAll() {
	for c := range all {
		c.reset()
	}
}

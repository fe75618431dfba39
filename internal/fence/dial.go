package fence

import (
	"context"
	"net"
	"time"
)

// The times with which client-go dials.
const (
	dialTimeout = 30 * time.Second
	keepAlive   = 30 * time.Second
)

// Dial connects like a net.Dialer. When the fence closes, the connection is reset, and no
// byte is written to it any more. Data that the server has not acknowledged when another
// candidate may lead is not sent again, even if this process is stopped or has ended.
func (f *Fence) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive, Control: setUserTimeout(f.options.Margin())}
	raw, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, fence: f}
	if err := f.register(c); err != nil {
		c.reset()
		return nil, err
	}
	return c, nil
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

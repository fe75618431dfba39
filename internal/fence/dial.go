package fence

import (
	"context"
	"net"
	"time"
)

// As client-go dials.
const (
	dialTimeout = 30 * time.Second
	keepAlive   = 30 * time.Second
)

// Dial connects like a net.Dialer. Once the fence has closed, no byte leaves
// through the connection, and it ends. What was written just before and has not
// been acknowledged when another candidate may lead is not sent again, even when
// this process is stopped or gone by then.
func (f *Fence) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive, Control: giveUpAfter(f.options.Margin())}
	raw, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, fence: f}
	if err := f.admit(c); err != nil {
		c.drop()
		return nil, err
	}
	return c, nil
}

// conn is a connection behind the fence.
type conn struct {
	net.Conn
	fence *Fence
}

// Write fails once the fence has closed. It passes for a candidate that waits,
// which reads, and has nothing to write.
func (c *conn) Write(b []byte) (int, error) {
	if c.fence.look() == closed {
		return 0, &net.OpError{Op: "write", Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: ErrLost}
	}
	return c.Conn.Write(b)
}

func (c *conn) Close() error {
	c.fence.forget(c)
	return c.Conn.Close()
}

// drop ends the connection, and what the kernel holds for it.
func (c *conn) drop() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		// Without it the kernel would go on to deliver after the close.
		_ = tcp.SetLinger(0)
	}
	_ = c.Conn.Close()
}

type conns map[*conn]bool

func (all conns) drop() {
	for c := range all {
		c.drop()
	}
}

package bounds

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
)

// Connections are those of a listener. Up to its limit they are served. As many again
// are accepted, so that they can be told why they are not served; what exceeds that is
// closed at once.
type Connections struct {
	net.Listener

	limit int64
	open  atomic.Int64
}

// Limit bounds the connections of the listener.
func Limit(listener net.Listener, limit int) *Connections {
	return &Connections{Listener: listener, limit: int64(limit)}
}

// Accept implements net.Listener.
func (c *Connections) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		open := c.open.Add(1)
		if open <= 2*c.limit {
			return &connection{Conn: conn, over: open > c.limit, closed: sync.OnceFunc(func() { c.open.Add(-1) })}, nil
		}
		c.open.Add(-1)
		_ = conn.Close() // Its peer sees that, and there is nobody else to tell.
	}
}

type connection struct {
	net.Conn

	over   bool
	closed func()
}

func (c *connection) Close() error {
	c.closed()
	return c.Conn.Close()
}

type overKey struct{}

// Context is http.Server's ConnContext: it keeps for Over whether the connection exceeds
// the limit.
func Context(ctx context.Context, conn net.Conn) context.Context {
	if secured, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secured.NetConn()
	}
	if c, ok := conn.(*connection); ok && c.over {
		return context.WithValue(ctx, overKey{}, true)
	}
	return ctx
}

// Over tells whether the request came by a connection that exceeds the limit. It must be
// refused, and its connection closed.
func Over(ctx context.Context) bool {
	over, _ := ctx.Value(overKey{}).(bool)
	return over
}

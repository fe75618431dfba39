package serve

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// maxUnauthenticated bounds the connections without a valid token so far.
const maxUnauthenticated = 256

// unauthenticated has the connections without a valid token so far, the oldest first. If there are
// too many, the oldest are closed. An agent shows its token within milliseconds, so that a client
// that opens connections and sends nothing keeps no agent out. The zero value is ready.
type unauthenticated struct {
	mu    sync.Mutex
	order list.List
	conns map[net.Conn]*list.Element
}

// changed is for http.Server.ConnState.
func (c *unauthenticated) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		if c.conns == nil {
			c.conns = map[net.Conn]*list.Element{}
		}
		c.conns[conn] = c.order.PushBack(conn)
		if oldest := c.order.Front(); len(c.conns) > maxUnauthenticated {
			conn, _ := oldest.Value.(net.Conn)
			c.remove(conn)
			go func() { _ = conn.Close() }() // It may wait for a TLS record to be written.
		}
	case http.StateClosed, http.StateHijacked:
		c.remove(conn)
	case http.StateActive, http.StateIdle:
	}
}

func (c *unauthenticated) remove(conn net.Conn) {
	if element, ok := c.conns[conn]; ok {
		c.order.Remove(element)
		delete(c.conns, conn)
	}
}

type connectionKey struct{}

// withConnection is for http.Server.ConnContext.
func withConnection(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conn)
}

// admit tells that a request on the connection has shown a valid token.
func (c *unauthenticated) admit(ctx context.Context) {
	if conn, ok := ctx.Value(connectionKey{}).(net.Conn); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.remove(conn)
	}
}

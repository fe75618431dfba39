package apiproxy

import (
	"net"
	"sync"
)

// gate is a listener that can be shut: then every connection breaks, the open
// ones and those that come, as when a server is away.
type gate struct {
	net.Listener

	mu     sync.Mutex
	closed int // how many have shut it
	open   map[*passedConn]bool
}

// passedConn is a connection that came through the gate.
type passedConn struct {
	net.Conn

	gate *gate
}

func newGate(listener net.Listener) *gate {
	return &gate{Listener: listener, open: map[*passedConn]bool{}}
}

// Accept returns the next connection that is let in.
func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		passed := &passedConn{Conn: conn, gate: g}
		if g.admit(passed) {
			return passed, nil
		}
		passed.abort()
	}
}

func (g *gate) admit(c *passedConn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed > 0 {
		return false
	}
	g.open[c] = true
	return true
}

// shut closes the gate until reopen is called, which counts once.
func (g *gate) shut() (reopen func()) {
	g.mu.Lock()
	g.closed++
	g.mu.Unlock()
	g.cut()
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.closed--
	})
}

// cut breaks the connections that are open.
func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.open {
		c.abort()
	}
	clear(g.open)
}

// abort makes the other side see a reset, not an orderly end.
func (c *passedConn) abort() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // Without it the end is an orderly one, which is bad enough.
	}
	_ = c.Conn.Close() // It may have ended by itself.
}

// Close ends the connection from the server's side.
func (c *passedConn) Close() error {
	c.gate.mu.Lock()
	delete(c.gate.open, c)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

package proxy

import "time"

// SetBodyTimeout shortens how long the body of a write may take.
func (p *Proxy) SetBodyTimeout(timeout time.Duration) { p.bodyTimeout = timeout }

// MaxConnections is how many connections are served at once.
const MaxConnections = maxConnections

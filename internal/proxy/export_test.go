package proxy

import "time"

// SetPatience shortens how long a body may pause.
func (p *Proxy) SetPatience(patience time.Duration) { p.patience = patience }

// MaxConnections is how many are served at once.
const MaxConnections = maxConnections

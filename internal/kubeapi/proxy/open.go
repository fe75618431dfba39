package proxy

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"

	"golang.org/x/net/netutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// listenOpenly takes the open port, if there is to be one.
func (p *Proxy) listenOpenly(port int) error {
	if port == 0 {
		return nil
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("listen without tokens (--proxy-open-port=%d): %w", port, err)
	}
	p.open = netutil.LimitListener(listener, maxConnections)
	p.log.Info("whoever reaches this port has the rights of the manager, without a token (--proxy-open-port)", "address", listener.Addr().String())
	return nil
}

// OpenServer serves the open port, for sidecars that know the base image's: without TLS
// and tokens, and without owners, confinement and followers, because it is nobody's run
// that asks. It is nil where there is none.
func (p *Proxy) OpenServer() *manager.Server {
	if p.open == nil {
		return nil
	}
	timeout := drainTimeout
	return &manager.Server{
		Name:            "API proxy without tokens",
		Server:          bounded(http.HandlerFunc(p.serveOpenly), p.log),
		Listener:        p.open,
		ShutdownTimeout: &timeout,
	}
}

func (p *Proxy) serveOpenly(w http.ResponseWriter, r *http.Request) {
	q := &request{Request: r}
	for _, step := range []func(http.ResponseWriter, *request) error{checkSource, p.checkPath, p.held} {
		if err := step(w, q); err != nil {
			refuse(w, err)
			return
		}
	}
	stripIdentity(q.Header)
	q.Trailer = nil
	p.upstream.ServeHTTP(w, q.Request)
}

// checkSource refuses what a browser sends for a page from elsewhere, which may have made
// its own name stand for this address.
func checkSource(_ http.ResponseWriter, q *request) error {
	if !isLoopback(q.Host) {
		return refusal(http.StatusForbidden, "the request is for the host %q; this is 127.0.0.1", q.Host)
	}
	for _, origin := range q.Header.Values("Origin") {
		if origin != "http://"+q.Host {
			return refusal(http.StatusForbidden, "the request comes from a page of %q", origin)
		}
	}
	// What a page loads without a script carries no Origin.
	if site := q.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return refusal(http.StatusForbidden, "a browser sends the request for a page from elsewhere (Sec-Fetch-Site: %s)", site)
	}
	return nil
}

func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return slices.Contains([]string{loopback, "localhost"}, host)
}

package proxy

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"

	"golang.org/x/net/netutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ensign-operator/ensign/internal/kubeapi/loopback"
	settings "github.com/ensign-operator/ensign/pkg/options"
)

// listenOpenPort listens on the open port, unless port is 0.
func (p *Proxy) listenOpenPort(port int) error {
	if port == 0 {
		return nil
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback.IP, strconv.Itoa(port)))
	if err != nil {
		return &settings.Error{Field: "ProxyOpenPort", Value: strconv.Itoa(port), Err: fmt.Errorf("listen without tokens: %w", err)}
	}
	p.openListener = netutil.LimitListener(listener, maxConnections)
	p.log.Info("everybody who reaches this port has the rights of the manager, without a token (Options.ProxyOpenPort)", "address", listener.Addr().String())
	return nil
}

// OpenServer returns the server of the open port; nil without one. It is for sidecars made for
// the proxy of the ansible-operator base image: it has no TLS and requires no token. Such a
// request belongs to no run, so there is no owner, no confinement, and no report of its writes.
func (p *Proxy) OpenServer() *manager.Server {
	if p.openListener == nil {
		return nil
	}
	timeout := drainTimeout
	return &manager.Server{
		Name:            "API proxy without tokens",
		Server:          newHTTPServer(http.HandlerFunc(p.serveOpenPort), p.log),
		Listener:        p.openListener,
		ShutdownTimeout: &timeout,
	}
}

func (p *Proxy) serveOpenPort(w http.ResponseWriter, r *http.Request) {
	q := &request{Request: r}
	for _, step := range []func(http.ResponseWriter, *request) error{checkSource, p.checkPath, p.resolve, checkSlash, p.checkImpersonation, p.checkFence} {
		if err := step(w, q); err != nil {
			refuse(w, err)
			return
		}
	}
	stripIdentity(q.Header)
	q.Trailer = nil
	p.upstream.ServeHTTP(w, q.Request)
}

// checkSource refuses the requests that a browser sends for pages of other sites. Such a page may
// have made its own host name resolve to 127.0.0.1.
func checkSource(_ http.ResponseWriter, q *request) error {
	if !isLoopback(q.Host) {
		return refusal(http.StatusForbidden, "the request is for the host %q; this is 127.0.0.1", q.Host)
	}
	for _, origin := range q.Header.Values("Origin") {
		if origin != "http://"+q.Host {
			return refusal(http.StatusForbidden, "the request comes from a page of %q", origin)
		}
	}
	// A request that no script makes, such as for an image, has no Origin.
	if site := q.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return refusal(http.StatusForbidden, "a browser sends the request for a page from elsewhere (Sec-Fetch-Site: %s)", site)
	}
	return nil
}

func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return slices.Contains([]string{loopback.IP, "localhost"}, host)
}

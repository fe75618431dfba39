package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog" //nolint:depguard // http.Server takes a standard logger only, and this leads it into logr.
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/netutil"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy/upstream"
)

const (
	// drainTimeout bounds the end of the server. Runs, its only clients, are gone
	// by then; what is left are idle connections.
	drainTimeout = 2 * time.Second
	// maxConnections is far more than all runs of a manager use: a task has one or
	// two. A further connection waits until another ends.
	maxConnections = 512
	// maxHeaderBytes is what the header of a request may have.
	maxHeaderBytes = 64 << 10
	// headerTimeout is how long a client may take for the handshake, and for the header
	// of its first request. Connections without a token are not kept for longer.
	headerTimeout = 10 * time.Second
	// bodyTimeout is how long a client may take for the body of a write that gets an
	// owner, at most 3 MiB.
	bodyTimeout = 30 * time.Second
	// idleTimeout is longer than a task is silent between two requests, mostly.
	idleTimeout = 2 * time.Minute
)

// Options are the settings of a Proxy.
type Options struct {
	// Port to listen on at 127.0.0.1; 0 takes any free one.
	Port int
	// OpenPort is a further one, that asks for no token; 0 is none.
	OpenPort int
	// InjectOwnerRef makes what a run creates belong to the run's CR.
	InjectOwnerRef bool
	// Confine reports whether runs of the owner may write in its namespace only; nil if
	// none is confined.
	Confine func(access.Owner) bool
	// Fence stops the forwarding when this manager may not lead any more; nil if
	// it always may.
	Fence Fence
	// WriteObservers are told of all writes that are forwarded.
	WriteObservers []access.WriteObserver
	Logger    logr.Logger
}

// Fence knows whether this manager's lease is surely held.
type Fence interface{ Held() bool }

// Proxy forwards the requests of runs to the API server.
type Proxy struct {
	listener    net.Listener
	open        net.Listener // nil where there is no open port
	address     string
	ca          []byte
	roots       *x509.CertPool
	grants      grants
	resolver    apirequest.RequestInfoResolver
	upstream    *upstream.Upstream
	inject      bool
	confines    func(access.Owner) bool
	fence       Fence
	observers   []access.WriteObserver
	bodyTimeout time.Duration
	log         logr.Logger
}

// New makes a proxy that reaches the API server as cfg says, and takes its
// port. It serves when the result of Server runs. An occupied port is an error
// that names the flag.
func New(cfg *rest.Config, options Options) (*Proxy, error) {
	up, err := upstream.New(cfg, noAnswer)
	if err != nil {
		return nil, err
	}
	identity, err := newIdentity()
	if err != nil {
		return nil, fmt.Errorf("make the API proxy's certificate: %w", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(options.Port)))
	if err != nil {
		return nil, fmt.Errorf("listen for the API proxy (--proxy-port=%d; 0 takes any free port): %w", options.Port, err)
	}
	p := &Proxy{
		listener: identity.wrap(netutil.LimitListener(listener, maxConnections)),
		address:  listener.Addr().String(),
		ca:       identity.ca,
		roots:    identity.roots(),
		resolver: &apirequest.RequestInfoFactory{
			APIPrefixes:          sets.NewString("api", "apis"),
			GrouplessAPIPrefixes: sets.NewString("api"),
		},
		upstream:    up,
		inject:      options.InjectOwnerRef,
		confines:    options.Confine,
		fence:       options.Fence,
		observers:   options.WriteObservers,
		bodyTimeout: bodyTimeout,
		log:         options.Logger,
	}
	if err := p.listenOpenly(options.OpenPort); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return p, nil
}

// Servers are Server, and OpenServer where there is one.
func (p *Proxy) Servers() []*manager.Server {
	servers := []*manager.Server{p.Server()}
	if open := p.OpenServer(); open != nil {
		servers = append(servers, open)
	}
	return servers
}

// Server returns the proxy as a manager.Server: among the first things that a
// manager starts and the last that it stops, so that no live run loses its API.
func (p *Proxy) Server() *manager.Server {
	timeout := drainTimeout
	return &manager.Server{
		Name:            "API proxy",
		Server:          bounded(p, p.log),
		Listener:        p.listener,
		ShutdownTimeout: &timeout,
	}
}

// bounded returns a server that waits for no client without end.
func bounded(handler http.Handler, log logr.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout, // Of the handshake too.
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(logr.ToSlogHandler(log), slog.LevelDebug),
	}
}

// Check is a health check: it fails when the proxy does not answer a handshake.
func (p *Proxy) Check(r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: p.roots, MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(ctx, "tcp", p.address)
	if err != nil {
		return fmt.Errorf("reach the API proxy: %w", err)
	}
	return conn.Close()
}

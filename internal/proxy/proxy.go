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
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	utilproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// drainTimeout bounds the end of the server. Runs, its only clients, are gone
// by then; what is left are idle connections.
const drainTimeout = 2 * time.Second

// Options are the settings of a Proxy.
type Options struct {
	// Port to listen on at 127.0.0.1; 0 takes any free one.
	Port int
	// InjectOwnerRef makes what a run creates belong to the run's CR.
	InjectOwnerRef bool
	// Fence stops the forwarding when this manager may not lead any more; nil if
	// it always may.
	Fence  Fence
	Logger logr.Logger
}

// Fence knows whether this manager's lease is surely held.
type Fence interface{ Held() bool }

// Proxy forwards the requests of runs to the API server.
type Proxy struct {
	listener net.Listener
	address  string
	ca       []byte
	roots    *x509.CertPool
	grants   grants
	resolver apirequest.RequestInfoResolver
	forward  http.Handler
	inject   bool
	fence    Fence
	log      logr.Logger
}

// New makes a proxy that reaches the API server as cfg says, and takes its
// port. It serves when the result of Server runs. An occupied port is an error
// that names the flag.
func New(cfg *rest.Config, options Options) (*Proxy, error) {
	forward, err := newForwarder(cfg)
	if err != nil {
		return nil, fmt.Errorf("prepare the way to the API server %q: %w", cfg.Host, err)
	}
	identity, err := newIdentity()
	if err != nil {
		return nil, fmt.Errorf("make the API proxy's certificate: %w", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(options.Port)))
	if err != nil {
		return nil, fmt.Errorf("listen for the API proxy (--proxy-port=%d; 0 takes any free port): %w", options.Port, err)
	}
	return &Proxy{
		listener: identity.wrap(listener),
		address:  listener.Addr().String(),
		ca:       identity.ca,
		roots:    identity.roots(),
		resolver: &apirequest.RequestInfoFactory{
			APIPrefixes:          sets.NewString("api", "apis"),
			GrouplessAPIPrefixes: sets.NewString("api"),
		},
		forward: forward,
		inject:  options.InjectOwnerRef,
		fence:   options.Fence,
		log:     options.Logger,
	}, nil
}

// Server gives the proxy as a manager.Server: among the first things that a
// manager starts and the last that it stops, so that no live run loses its API.
func (p *Proxy) Server() *manager.Server {
	timeout := drainTimeout
	return &manager.Server{
		Name: "api proxy",
		Server: &http.Server{
			Handler: p, ReadHeaderTimeout: 30 * time.Second, MaxHeaderBytes: 64 << 10,
			ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(p.log), slog.LevelDebug),
		},
		Listener:        p.listener,
		ShutdownTimeout: &timeout,
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

// ServeHTTP answers one request of a run.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	session, ok := p.grants.authenticate(r)
	if !ok {
		refuse(w, http.StatusUnauthorized, "no token of a live run: use the kubeconfig that KUBECONFIG of the run names")
		return
	}
	if err := checkPath(r.URL); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	info, err := p.resolver.NewRequestInfo(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	stripIdentity(r.Header)
	r.Trailer = nil // Nobody reads trailers, and nothing must hide there.
	if p.inject && createsObject(info) {
		if err := adopt(w, r, session.Owner, info.Namespace); err != nil {
			refused, ok := errors.AsType[*refusedError](err)
			if !ok {
				refused = &refusedError{http.StatusBadRequest, err.Error()}
			}
			refuse(w, refused.code, refused.message)
			return
		}
	}
	if p.fence != nil && !p.fence.Held() {
		// Asked last, because a body may take long to come.
		refuse(w, http.StatusServiceUnavailable, "this manager's lease is not surely held any more; another replica may be at work, and this run is being ended")
		return
	}
	p.log.V(2).Info("forwarding request", "verb", info.Verb, "path", r.URL.Path, "owner", session.Owner.String())
	p.forward.ServeHTTP(w, r)
}

func newForwarder(cfg *rest.Config) (http.Handler, error) {
	target, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, err
	}
	direct, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, err
	}
	upgrade, err := upgradeTransport(cfg)
	if err != nil {
		return nil, err
	}
	// The handler answers a GET with a redirect where the location has no path.
	// A base path (a cluster behind a gateway) stands before the request's own.
	basePath := strings.TrimSuffix(target.Path, "/")
	location := &url.URL{Scheme: target.Scheme, Host: target.Host, Path: basePath + "/"}
	handler := utilproxy.NewUpgradeAwareHandler(location, direct, false, false, responder{})
	handler.UpgradeTransport = upgrade
	handler.UseRequestLocation = true
	handler.UseLocationHost = true
	handler.AppendLocationPath = basePath != ""
	return handler, nil
}

// upgradeTransport carries exec, attach and port-forward. HTTP/2 cannot be
// upgraded, so its connections offer HTTP/1.1 only.
func upgradeTransport(cfg *rest.Config) (utilproxy.UpgradeRequestRoundTripper, error) {
	settings, err := cfg.TransportConfig()
	if err != nil {
		return nil, err
	}
	tlsConfig, err := transport.TLSConfigFor(settings)
	if err != nil {
		return nil, err
	}
	credentials, err := transport.HTTPWrappersForConfig(settings, utilproxy.MirrorRequest)
	if err != nil {
		return nil, err
	}
	connection := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: tlsConfig, TLSNextProto: noHTTP2(), DialContext: cfg.Dial}
	return utilproxy.NewUpgradeRequestRoundTripper(connection, credentials), nil
}

package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog" //nolint:depguard // http.Server takes a standard logger only, and this leads it into logr.
	"net"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/netutil"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/loopback"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy/upstream"
	settings "github.com/ensign-operator/ensign/pkg/options"
)

const (
	// drainTimeout bounds the shutdown of the server. Runs, its only clients, have ended by
	// then, and only idle connections are left.
	drainTimeout = 2 * time.Second
	// maxConnections is far more than all runs of a manager use: a task has one or two. A
	// further connection waits until another one closes.
	maxConnections = 512
	// maxHeaderBytes bounds the header of a request.
	maxHeaderBytes = 64 << 10
	// headerTimeout bounds the TLS handshake, and reading a request's header. A connection
	// without a token lasts no longer.
	headerTimeout = 10 * time.Second
	// bodyTimeout bounds reading the body of a write that gets an owner. The body has at most
	// 3 MiB.
	bodyTimeout = 30 * time.Second
	// idleTimeout is longer than most pauses of a task between two requests.
	idleTimeout = 2 * time.Minute
)

// Options are the settings of a Proxy.
type Options struct {
	// Port is the port to listen on at 127.0.0.1; 0 takes any free one.
	Port int
	// OpenPort is a second port, which requires no token; 0 means none.
	OpenPort int
	// InjectOwnerRef makes the run's CR the owner of the objects that the run creates.
	InjectOwnerRef bool
	// IsConfined reports whether runs of the owner may write in its namespace only; nil means
	// that no run is confined.
	IsConfined func(access.Owner) bool
	// Fence reports whether the proxy may forward requests; nil means that it always may.
	Fence Fence
	// WriteObservers observe each write that the proxy forwards for a run.
	WriteObservers []access.WriteObserver
	// ObserveRequest is called with each request of a run. The function that it returns is called
	// once with the status code of the response, 0 if that is not known. nil: requests are not
	// observed.
	ObserveRequest RequestObserver
	// Report takes the reports that runs of charts POST to the manager at ReportPath. An error is
	// the answer.
	Report     func(ctx context.Context, owner access.Owner, body []byte) error
	ReportPath string
	Logger     logr.Logger
}

// RequestObserver is called for each request of a run, and ended at its end, with the status code of the response.
type RequestObserver func(session *access.Session, info *apirequest.RequestInfo) (ended func(code int))

// Fence knows whether this manager is still the leader.
type Fence interface {
	// Held reports whether this manager surely holds its lease.
	Held() bool
}

// Proxy forwards the requests of runs to the API server.
type Proxy struct {
	listener     net.Listener
	openListener net.Listener // nil without an open port
	address      string
	certificate  loopback.Certificate
	grants       grants
	resolver     apirequest.RequestInfoResolver
	upstream     *upstream.Upstream
	injectOwner  bool
	// impersonates is true where the manager's own credentials impersonate an account.
	impersonates bool
	isConfined   func(access.Owner) bool
	fence        Fence
	observers    []access.WriteObserver
	observe      RequestObserver // may be nil
	report       func(ctx context.Context, owner access.Owner, body []byte) error
	reportPath   string
	bodyTimeout  time.Duration
	log          logr.Logger
}

// New returns a Proxy for the API server of cfg, which listens but does not serve yet: the
// servers of Servers do. An occupied port is an error that names the flag.
func New(cfg *rest.Config, options Options) (*Proxy, error) {
	up, err := upstream.New(cfg, refuseWithoutResponse)
	if err != nil {
		return nil, err
	}
	certificate, err := loopback.NewCertificate()
	if err != nil {
		return nil, fmt.Errorf("make the API proxy's certificate: %w", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback.IP, strconv.Itoa(options.Port)))
	if err != nil {
		return nil, &settings.Error{Field: "ProxyPort", Value: strconv.Itoa(options.Port), Err: fmt.Errorf("listen for the API proxy (0 takes any free port): %w", err)}
	}
	p := &Proxy{
		listener:    certificate.Listener(netutil.LimitListener(listener, maxConnections)),
		address:     listener.Addr().String(),
		certificate: certificate,
		resolver: &apirequest.RequestInfoFactory{
			APIPrefixes:          sets.NewString("api", "apis"),
			GrouplessAPIPrefixes: sets.NewString("api"),
		},
		upstream:     up,
		injectOwner:  options.InjectOwnerRef,
		impersonates: !reflect.ValueOf(cfg.Impersonate).IsZero(),
		isConfined:   options.IsConfined,
		fence:        options.Fence,
		observers:    options.WriteObservers,
		observe:      options.ObserveRequest,
		report:       options.Report,
		reportPath:   options.ReportPath,
		bodyTimeout:  bodyTimeout,
		log:          options.Logger,
	}
	if err := p.listenOpenPort(options.OpenPort); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return p, nil
}

// Servers returns the server of the proxy's port, and that of its open port if there is one.
func (p *Proxy) Servers() []*manager.Server {
	servers := []*manager.Server{p.Server()}
	if open := p.OpenServer(); open != nil {
		servers = append(servers, open)
	}
	return servers
}

// Server returns the proxy as a manager.Server. A manager starts such a server among the first
// of its runnables and stops it among the last, so that no run loses the API.
func (p *Proxy) Server() *manager.Server {
	timeout := drainTimeout
	return &manager.Server{
		Name:            "API proxy",
		Server:          newHTTPServer(p, p.log),
		Listener:        p.listener,
		ShutdownTimeout: &timeout,
	}
}

// newHTTPServer returns a server with bounds for slow clients.
func newHTTPServer(handler http.Handler, log logr.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout, // It bounds the handshake too.
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(logr.ToSlogHandler(log), slog.LevelDebug),
	}
}

// Check is a health check. It fails when the proxy does not complete a TLS handshake.
func (p *Proxy) Check(r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: p.certificate.Roots(), MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(ctx, "tcp", p.address)
	if err != nil {
		return fmt.Errorf("reach the API proxy: %w", err)
	}
	return conn.Close()
}

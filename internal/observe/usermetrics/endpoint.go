package usermetrics

import (
	"errors"
	"fmt"
	"log/slog" //nolint:depguard // http.Server takes a standard logger only, and this leads it into logr.
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/netutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	path = "/metrics"
	// maxBodyBytes is far more than a post with the longest name and description needs.
	maxBodyBytes = 64 << 10
	// maxConnections is more than all runs of a manager open at once: a task has one. A further
	// connection waits until another one closes.
	maxConnections = 128
	// requestTimeout bounds reading a post, and writing the response.
	requestTimeout = 10 * time.Second
	// drainTimeout bounds the shutdown of the server. Runs, its only clients, have ended by then.
	drainTimeout = 2 * time.Second
)

// Options are the settings of an Endpoint.
type Options struct {
	// Address is the address to listen on, such as "127.0.0.1:5050".
	Address string
	// Allow reports whether the request's sender may post; nil means that everybody may.
	Allow  func(*http.Request) bool
	Logger logr.Logger
}

// Endpoint accepts posts at /metrics.
type Endpoint struct {
	registry *Registry
	listener net.Listener
	allow    func(*http.Request) bool
	log      logr.Logger
}

// New returns an Endpoint that listens but does not serve yet: the result of Server does.
func New(registry *Registry, o Options) (*Endpoint, error) {
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for metrics of roles: %w", err)
	}
	return &Endpoint{registry: registry, listener: netutil.LimitListener(listener, maxConnections), allow: o.Allow, log: o.Logger}, nil
}

// URL returns the URL for posts.
func (e *Endpoint) URL() string { return "http://" + e.listener.Addr().String() + path }

// Server returns the endpoint as a manager.Server, which a manager stops after the runs.
func (e *Endpoint) Server() *manager.Server {
	timeout := drainTimeout
	return &manager.Server{
		Name: "user metrics",
		Server: &http.Server{
			Handler:     e,
			ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: requestTimeout,
			MaxHeaderBytes: maxBodyBytes,
			ErrorLog:       slog.NewLogLogger(logr.ToSlogHandler(e.log), slog.LevelDebug),
		},
		Listener:        e.listener,
		ShutdownTimeout: &timeout,
	}
}

// ServeHTTP responds to a post with status 200, or with an error if the post has changed nothing.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if code, err := e.checkRequest(w, r); err != nil {
		e.refuse(w, code, err)
		return
	}
	p, err := parse(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if tooLong, ok := errors.AsType[*http.MaxBytesError](err); ok {
		e.refuse(w, http.StatusRequestEntityTooLarge, fmt.Errorf("the body has more than %d bytes", tooLong.Limit))
		return
	}
	if err == nil {
		err = e.registry.apply(p)
	}
	if err != nil {
		e.refuse(w, http.StatusBadRequest, err)
	}
}

// checkRequest returns an error and its status code if the request is not a POST, or is not
// allowed.
func (e *Endpoint) checkRequest(w http.ResponseWriter, r *http.Request) (code int, err error) {
	switch {
	case r.URL.Path != path:
		return http.StatusNotFound, fmt.Errorf("only %s is here", path)
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed, errors.New("roles POST their metrics here; the manager shows them at its own metrics endpoint")
	case r.Header.Get("Origin") != "":
		return http.StatusForbidden, errors.New("pages of browsers do not post here")
	case e.allow != nil && !e.allow(r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		return http.StatusUnauthorized, errors.New("only the bearer token of a current run may post here; it stands in the file that K8S_AUTH_KUBECONFIG names")
	}
	return 0, nil
}

func (e *Endpoint) refuse(w http.ResponseWriter, code int, err error) {
	e.log.V(1).Info("refused a metric", "code", code, "reason", err.Error())
	http.Error(w, err.Error(), code)
}

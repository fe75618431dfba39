package serve

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog" //nolint:depguard // http.Server takes a standard logger only, and this leads it into logr.
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ensign-operator/ensign/internal/jobs/identity"
	"github.com/ensign-operator/ensign/internal/jobs/wire"
)

const (
	maxHeaderBytes = 64 << 10
	// headerTimeout bounds the TLS handshake, and reading a request's header.
	headerTimeout = 10 * time.Second
	// bodyTimeout bounds reading the body of an agent's request, and writing the response.
	bodyTimeout = 30 * time.Second
	// eventsTimeout bounds how long the run makes an agent wait in one request.
	eventsTimeout = 20 * time.Second
	idleTimeout   = 2 * time.Minute
	drainTimeout  = 2 * time.Second
	// maxReviews is how many claims the API server reviews at a time, of all senders together.
	maxReviews = 8
)

// Options are the settings of a Server. Identity, Registry, Reviewer and API are required.
type Options struct {
	Identity *identity.Identity
	Registry Registry
	// Fence is asked at each request; nil means that this manager always leads.
	Fence    Fence
	Reviewer Reviewer
	// API is the API proxy, which takes the tokens of Live.ProxyToken.
	API http.Handler
	// Metrics takes the metrics that roles post, at /metrics; nil: none are taken.
	Metrics http.Handler
	// Address is the one to listen on, such as ":8445".
	Address string
	Logger  logr.Logger
}

// Server serves the agents of Jobs.
type Server struct {
	options         Options
	listener        net.Listener
	api             http.Handler
	reviews         chan struct{}
	unauthenticated unauthenticated
}

// New returns a Server that listens but does not serve yet: the result of Server does.
func New(o Options) (*Server, error) {
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for the agents of Jobs: %w", err)
	}
	return &Server{
		options: o, listener: tls.NewListener(listener, o.Identity.ServerTLS()), reviews: make(chan struct{}, maxReviews),
		// Nothing cleans the path: the proxy must see it as the run sent it.
		api: http.StripPrefix(wire.APIPath, o.API),
	}, nil
}

// Address returns the address that the server listens on.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close frees the address of a Server that does not serve.
func (s *Server) Close() error { return s.listener.Close() }

// Server returns the server that runs on all replicas, whether they lead or not, and is stopped
// after the runs.
func (s *Server) Server() *manager.Server {
	timeout := drainTimeout
	return &manager.Server{
		Name: "agents of Jobs",
		Server: &http.Server{
			Handler:           s,
			ReadHeaderTimeout: headerTimeout, // It bounds the handshake too.
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			ConnState:         s.unauthenticated.changed,
			ConnContext:       withConnection,
			ErrorLog:          slog.NewLogLogger(logr.ToSlogHandler(s.options.Logger.V(1)), slog.LevelDebug),
		},
		Listener:        s.listener,
		ShutdownTimeout: &timeout,
	}
}

// ServeHTTP answers one request of an agent.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := bearerToken(r)
	if r.URL.Path == wire.ClaimPath {
		s.claim(w, r, token)
		return
	}
	session, ok := s.options.Identity.Session(token)
	if !ok {
		s.deny(w, errors.New("no token of a session"))
		return
	}
	s.unauthenticated.admit(r.Context())
	if !s.leads() {
		away(w, "this manager does not lead")
		return
	}
	live, ok := s.options.Registry.Live(session.JobUID, session.RunID)
	if !ok {
		away(w, "this manager does not have the run, or not yet")
		return
	}
	switch {
	case r.URL.Path == wire.EventsPath && r.Method == http.MethodPost:
		s.takeEvents(w, r, live)
	case r.URL.Path == wire.ResultPath && r.Method == http.MethodPost:
		s.takeResult(w, r, live, session)
	case strings.HasPrefix(r.URL.Path, wire.APIPath+"/"):
		r.Header.Set("Authorization", "Bearer "+live.ProxyToken())
		s.api.ServeHTTP(&awayWriter{w, s}, r)
	case r.URL.Path == wire.MetricsPath && s.options.Metrics != nil:
		r.Header.Set("Authorization", "Bearer "+live.ProxyToken())
		r.URL.Path = "/metrics"
		s.options.Metrics.ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

func bearerToken(r *http.Request) string {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func (s *Server) leads() bool { return s.options.Fence == nil || s.options.Fence.Held() }

// away responds that this manager does not have the run. The agent tries all managers again.
func away(w http.ResponseWriter, why string) {
	w.Header().Set(wire.NotLeaderHeader, why)
	http.Error(w, why, http.StatusServiceUnavailable)
}

// awayWriter adds NotLeaderHeader to the proxy's refusal when this manager ceases to lead during a
// request, so that the agent sends the request to the next leader.
type awayWriter struct {
	http.ResponseWriter

	s *Server
}

// Unwrap is for http.ResponseController.
func (a *awayWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (a *awayWriter) WriteHeader(code int) {
	if code == http.StatusServiceUnavailable && !a.s.leads() {
		a.Header().Set(wire.NotLeaderHeader, "this manager does not lead any more")
	}
	a.ResponseWriter.WriteHeader(code)
}

// deny answers a client that is not an agent of a run. All get the same answer; why is only for the
// log.
func (s *Server) deny(w http.ResponseWriter, why error) {
	s.options.Logger.V(1).Info("denied a request", "reason", why.Error())
	w.Header().Set("Connection", "close")
	http.Error(w, "no token of a run", http.StatusUnauthorized)
}

func (s *Server) claim(w http.ResponseWriter, r *http.Request, token string) {
	switch {
	case r.Method != http.MethodPost || token == "":
		s.deny(w, errors.New("a request for a run without a token"))
		return
	case !s.leads():
		away(w, "this manager does not lead")
		return
	}
	caller, err := s.review(r.Context(), token)
	if denied, ok := errors.AsType[*DeniedError](err); ok {
		s.deny(w, denied)
		return
	}
	if errors.Is(err, ErrUnlabeled) {
		away(w, err.Error())
		return
	}
	if err != nil {
		away(w, "the token can't be reviewed now: "+err.Error())
		return
	}
	s.unauthenticated.admit(r.Context())
	assignment, err := s.options.Registry.Claim(r.Context(), caller.Job, caller.JobUID, caller.PodUID)
	switch {
	case errors.Is(err, ErrTaken):
		http.Error(w, ErrTaken.Error(), http.StatusConflict)
		return
	case err != nil:
		away(w, err.Error())
		return
	}
	assignment.Spec.Kubeconfig = nil // It has a token of the proxy.
	assignment.Session = s.options.Identity.Token(identity.Session{JobUID: caller.JobUID, PodUID: caller.PodUID, RunID: assignment.Spec.ID})
	respond(w, assignment)
}

func (s *Server) review(ctx context.Context, token string) (Caller, error) {
	select {
	case s.reviews <- struct{}{}:
		defer func() { <-s.reviews }()
	case <-ctx.Done():
		return Caller{}, ctx.Err()
	}
	return s.options.Reviewer.Review(ctx, token)
}

func (s *Server) takeEvents(w http.ResponseWriter, r *http.Request, live Live) {
	events, ok := read(w, r, wire.MaxEventsBytes, wire.DecodeEvents)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), eventsTimeout)
	defer cancel()
	next, err := live.Events(ctx, events.First, events.Events)
	if err != nil && ctx.Err() == nil {
		away(w, err.Error())
		return
	}
	respond(w, wire.Wanted{Next: next})
}

func (s *Server) takeResult(w http.ResponseWriter, r *http.Request, live Live, session identity.Session) {
	result, ok := read(w, r, wire.MaxResultBytes, wire.DecodeResult)
	if !ok {
		return
	}
	if result.RunID != session.RunID {
		http.Error(w, "this is the result of another run", http.StatusBadRequest)
		return
	}
	if err := live.Result(r.Context(), result); err != nil {
		away(w, err.Error())
		return
	}
	respond(w, struct{}{})
}

// read decodes the body, or responds with an error and returns false.
func read[T any](w http.ResponseWriter, r *http.Request, limit int64, decode func(io.Reader) (T, error)) (T, bool) {
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(time.Now().Add(bodyTimeout))
	value, err := decode(http.MaxBytesReader(w, r.Body, limit))
	_ = connection.SetReadDeadline(time.Time{}) // It would end the request's context too.
	if err == nil {
		return value, true
	}
	code := http.StatusBadRequest
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		code = http.StatusRequestEntityTooLarge
	}
	http.Error(w, err.Error(), code)
	return value, false
}

// respond writes a value as JSON. An error means that the agent is gone, and asks again.
func respond(w http.ResponseWriter, value any) {
	connection := http.NewResponseController(w)
	_ = connection.SetWriteDeadline(time.Now().Add(bodyTimeout))
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
	_ = connection.Flush()
	_ = connection.SetWriteDeadline(time.Time{})
}

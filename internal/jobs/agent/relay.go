package agent

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog" //nolint:depguard // http.Server takes a standard logger only, and this leads it into logr.
	"net"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/internal/kubeapi/loopback"
)

const (
	// maxKept is how many bytes of a request's body are kept to send it again.
	maxKept = 3 << 20
	// headerTimeout bounds reading a request's header.
	headerTimeout  = 10 * time.Second
	maxHeaderBytes = 64 << 10
	// userMetricsPort is where modules of the operator SDK post metrics.
	userMetricsPort = "5050"
	// userMetricsVariable names the URL for metrics in the environment of runs.
	userMetricsVariable = "ENSIGN_USER_METRICS"
)

// relay forwards the requests of the run to the manager, in place of the API proxy of a local run. It
// listens on the loopback interface of the pod, which only the pod's containers can reach.
type relay struct {
	servers []*http.Server
	// kubeconfig is the run's.
	kubeconfig []byte
	// environ has the variables that the run needs for the relay.
	environ []string
}

// startRelay starts a relay that sends requests by way of managers, with the session's token.
func startRelay(managers client, assignment wire.Assignment, log logr.Logger) (*relay, error) {
	certificate, err := loopback.NewCertificate()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback.IP, "0"))
	if err != nil {
		return nil, fmt.Errorf("listen for the run's requests: %w", err)
	}
	r, token := &relay{}, rand.Text()
	if r.kubeconfig, err = certificate.Kubeconfig(listener.Addr().String(), token, assignment.Namespace); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	r.serve(certificate.Listener(listener), only(token, forwardTo(wire.APIPath, managers, assignment.Session, log)), log)
	if !assignment.UserMetrics {
		return r, nil
	}
	open, err := net.Listen("tcp", net.JoinHostPort(loopback.IP, userMetricsPort))
	if err != nil { // A sidecar has the port and gets the metrics.
		if open, err = net.Listen("tcp", net.JoinHostPort(loopback.IP, "0")); err != nil {
			return nil, errors.Join(fmt.Errorf("listen for the run's metrics: %w", err), r.close())
		}
	}
	r.environ = []string{userMetricsVariable + "=http://" + open.Addr().String() + "/metrics"}
	r.serve(open, forwardTo("/v1", managers, assignment.Session, log), log)
	return r, nil
}

func (r *relay) serve(listener net.Listener, handler http.Handler, log logr.Logger) {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(log.V(1)), slog.LevelDebug),
	}
	r.servers = append(r.servers, server)
	go func() { _ = server.Serve(listener) }() // It ends with close.
}

// close ends all requests. The run has ended.
func (r *relay) close() error {
	var errs []error
	for _, server := range r.servers {
		errs = append(errs, server.Close())
	}
	return errors.Join(errs...)
}

// only refuses requests without the token, as the API proxy does.
func only(token string, handler http.Handler) http.Handler {
	want := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "no token of this run: use the kubeconfig that KUBECONFIG of the run names")
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// forwardTo sends requests to the managers, with the prefix in front of their paths.
func forwardTo(prefix string, managers client, session string, log logr.Logger) http.Handler {
	return keepBody(&httputil.ReverseProxy{
		Transport:     managers,
		FlushInterval: -1, // Watches.
		ErrorLog:      slog.NewLogLogger(logr.ToSlogHandler(log.V(1)), slog.LevelDebug),
		Rewrite: func(p *httputil.ProxyRequest) {
			// The manager must see path and query as the run sent them.
			p.Out.URL.Path, p.Out.URL.RawQuery = prefix+p.In.URL.Path, p.In.URL.RawQuery
			if p.In.URL.RawPath != "" {
				p.Out.URL.RawPath = prefix + p.In.URL.RawPath
			}
			p.Out.Header.Set("Authorization", "Bearer "+session)
			p.Out.Host = "" // That of the manager.
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				panic(http.ErrAbortHandler) // The client is gone, or the run has ended.
			}
			refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, err.Error())
		},
	})
}

// keepBody reads a short body of a request so that it can be sent again.
func keepBody(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody && r.Header.Get("Upgrade") == "" {
			beginning, err := io.ReadAll(io.LimitReader(r.Body, maxKept+1))
			switch {
			case err != nil:
				return // The client is gone.
			case len(beginning) <= maxKept:
				r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(beginning)), nil }
				r.Body, _ = r.GetBody()
			default:
				r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(beginning), r.Body))
			}
		}
		handler.ServeHTTP(w, r)
	})
}

// refuse responds as the API proxy does.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{ // An error means that the client is gone.
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "ensign relay: " + message,
	})
}

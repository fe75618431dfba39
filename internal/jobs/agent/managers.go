package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/jobs/identity"
	"github.com/ensign-operator/ensign/internal/jobs/wire"
)

const (
	dialTimeout = 3 * time.Second
	// firstPause and longestPause are the pauses after all managers have been tried.
	firstPause, longestPause = 200 * time.Millisecond, 2 * time.Second
	// logInterval is the pause between two log lines about managers that are away.
	logInterval = 30 * time.Second
)

// errAway is returned for a manager that does not have the run. Nothing was done.
var errAway = errors.New("no manager has this run now")

// managers finds the operator's manager that has the run.
type managers struct {
	endpoints []string // host:port
	transport *http.Transport
	log       logr.Logger

	mu     sync.Mutex
	leader leader
	logged time.Time
}

// leader is the address that has had the run so far.
type leader struct {
	address string
	// ctx ends when another one has the run, with the requests to this one.
	ctx    context.Context //nolint:containedctx // It is the lifetime of the leader.
	cancel context.CancelFunc
}

func newManagers(addresses, publicKey string, log logr.Logger) (*managers, error) {
	config, err := identity.ClientTLS(publicKey)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", wire.EnvKey, err)
	}
	m := &managers{endpoints: strings.Split(addresses, ","), log: log, transport: &http.Transport{
		TLSClientConfig:     config, // No proxy: managers are in the cluster.
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true, // Bodies pass as they are.
	}}
	for _, endpoint := range m.endpoints {
		if _, _, err := net.SplitHostPort(endpoint); err != nil {
			return nil, fmt.Errorf("%s: %w", wire.EnvAddress, err)
		}
	}
	return m, nil
}

// client is an http.RoundTripper that sends each request to the manager that has the run. It repeats
// a request only if that surely does nothing twice.
type client struct {
	*managers

	// timeout bounds the search for the manager; 0 means until the request's context ends.
	timeout time.Duration
}

// RoundTrip implements http.RoundTripper. The host of the request's URL is ignored.
func (c client) RoundTrip(r *http.Request) (*http.Response, error) {
	began, pause := time.Now(), firstPause
	for {
		var why error
		for address := range c.candidates(r.Context(), &why) {
			response, again, err := c.try(r, address) //nolint:bodyclose // The caller closes it.
			if !again {
				return response, err
			}
			why = err
		}
		c.logNoManager(why)
		if c.timeout > 0 && time.Since(began)+pause > c.timeout {
			return nil, why
		}
		select {
		case <-time.After(pause):
			pause = min(longestPause, pause*3/2)
		case <-r.Context().Done():
			return nil, fmt.Errorf("%w: %w", context.Cause(r.Context()), why)
		}
	}
}

// candidates yields the addresses of managers, first the one that has had the run so far. It looks
// names up only if that one no longer has the run. why becomes an error if a name has no address.
func (m *managers) candidates(ctx context.Context, why *error) iter.Seq[string] {
	m.mu.Lock()
	current := m.leader.address
	m.mu.Unlock()
	return func(yield func(string) bool) {
		if current != "" && !yield(current) {
			return
		}
		for _, endpoint := range m.endpoints {
			host, port, _ := net.SplitHostPort(endpoint)
			ips, err := net.DefaultResolver.LookupHost(ctx, host)
			if err != nil {
				*why = err
			}
			for _, ip := range ips {
				if address := net.JoinHostPort(ip, port); address != current && !yield(address) {
					return
				}
			}
		}
	}
}

// try sends the request to one manager. again says that the request may be sent to another one;
// then err says why.
func (m *managers) try(r *http.Request, address string) (response *http.Response, again bool, err error) {
	ctx, cancel := context.WithCancel(r.Context())
	m.endWithLeader(ctx, address, cancel)
	var sent atomic.Bool
	out := r.Clone(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}))
	out.URL.Scheme, out.URL.Host, out.Host = "https", address, ""
	hasBody := r.Body != nil && r.Body != http.NoBody
	if hasBody && r.GetBody != nil {
		if out.Body, err = r.GetBody(); err != nil {
			cancel()
			return nil, false, err
		}
	}
	mayRepeat := r.Context().Err() == nil && (!hasBody || r.GetBody != nil)
	response, err = m.transport.RoundTrip(out)
	if err != nil {
		cancel()
		return nil, mayRepeat && (!sent.Load() || isIdempotent(r)), err
	}
	if why := response.Header.Get(wire.NotLeaderHeader); why != "" {
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 4<<10))
		_ = response.Body.Close()
		cancel()
		return nil, mayRepeat, fmt.Errorf("%w: %s: %s", errAway, address, why)
	}
	if response.StatusCode != http.StatusUnauthorized { // A 401 may be another operator's.
		m.follow(address)
	}
	return response, false, nil
}

// idempotencyKey is the header that tells http.Transport that a request may be sent again. Without a
// value the header is not sent.
const idempotencyKey = "Idempotency-Key"

// isIdempotent reports whether a request that got no answer may be sent again.
func isIdempotent(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete:
		return true
	case http.MethodPatch:
		return r.Header.Get("Content-Type") != "application/json-patch+json"
	}
	_, is := r.Header[idempotencyKey]
	return is
}

// follow notes that the address has the run.
func (m *managers) follow(address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.logged = time.Time{}
	if m.leader.address == address {
		return
	}
	if m.leader.cancel != nil {
		m.leader.cancel()
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.leader = leader{address, ctx, cancel}
	m.log.Info("this manager has the run", "manager", address)
}

// endWithLeader calls cancel if another manager than this one gets the run before ctx ends.
func (m *managers) endWithLeader(ctx context.Context, address string, cancel func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leader.address == address {
		stop := context.AfterFunc(m.leader.ctx, cancel)
		context.AfterFunc(ctx, func() { stop() })
	}
}

// logNoManager logs that no manager has the run, and again each logInterval until a manager answers.
func (m *managers) logNoManager(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if why != nil && time.Since(m.logged) > logInterval {
		m.logged = time.Now()
		m.log.Info("no manager knows the run of this pod now; trying again", "reason", why.Error())
	}
}

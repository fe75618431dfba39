package proxy

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
)

const (
	// tokenBytes makes tokens of 256 bits.
	tokenBytes = 32
	// finalWriteTimeout is how long the proxy still writes to a client whose token has ended.
	finalWriteTimeout = time.Second
)

// grants has the grants of current runs, by the digest of their token. A look-up by digest does not
// leak by its duration how much of a token is right, and a dump of the manager's memory shows
// no token here.
type grants struct {
	mu   sync.RWMutex
	live map[[sha256.Size]byte]*grant
}

// grant is the access of one run, with its open requests.
type grant struct {
	session *access.Session
	// ctx is done when the token has ended.
	ctx    context.Context //nolint:containedctx // It is the lifetime of the token, which outlives every call.
	cancel context.CancelFunc
	// requests counts the open requests.
	requests sync.WaitGroup
}

// Grant gives one run of the owner access to the API. It returns a kubeconfig with a token, whose
// default namespace is the owner's. revoke ends the token, and all requests and streams that
// use it.
func (p *Proxy) Grant(owner access.Owner) (kubeconfig []byte, revoke func(), err error) {
	return p.GrantSession(access.Session{Owner: owner})
}

// GrantSession is Grant for a run of which the session says more.
func (p *Proxy) GrantSession(session access.Session) (kubeconfig []byte, revoke func(), err error) {
	owner := session.Owner
	secret := make([]byte, tokenBytes)
	if _, err := rand.Read(secret); err != nil {
		return nil, nil, fmt.Errorf("make a token for %s: %w", owner, err)
	}
	token := base64.RawURLEncoding.EncodeToString(secret)
	kubeconfig, err = p.certificate.Kubeconfig(p.address, token, owner.Namespace)
	if err != nil {
		return nil, nil, fmt.Errorf("write the kubeconfig for %s: %w", owner, err)
	}
	g := &grant{session: &session}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	remove := p.grants.add(token, g)
	return kubeconfig, sync.OnceFunc(func() {
		remove()
		g.cancel()
		go p.notifySessionEnded(g)
	}), nil
}

// notifySessionEnded waits for the session's requests and tells the observers that it has ended.
func (p *Proxy) notifySessionEnded(g *grant) {
	g.requests.Wait()
	for _, observer := range p.observers {
		observer.SessionEnded(g.session)
	}
}

func (g *grants) add(token string, granted *grant) (remove func()) {
	digest := sha256.Sum256([]byte(token))
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.live == nil {
		g.live = map[[sha256.Size]byte]*grant{}
	}
	g.live[digest] = granted
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.live, digest)
	}
}

// authenticate returns the grant of the request's bearer token. The request counts as open until
// the caller calls done. A request with more than one Authorization header has no grant.
func (g *grants) authenticate(r *http.Request) (granted *grant, done func(), ok bool) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return nil, nil, false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return nil, nil, false
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	granted, ok = g.live[sha256.Sum256([]byte(strings.TrimSpace(token)))]
	if !ok {
		return nil, nil, false
	}
	granted.requests.Add(1)
	return granted, granted.requests.Done, true
}

// HasLiveToken reports whether the request carries the token of a running run.
func (p *Proxy) HasLiveToken(r *http.Request) bool {
	_, done, ok := p.grants.authenticate(r)
	if ok {
		done()
	}
	return ok
}

// requestContext returns a copy of ctx that also ends with the token. The end of the token sets
// deadlines for reading from the client and writing to it.
func (g *grant) requestContext(ctx context.Context, w http.ResponseWriter) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.ctx, func() {
		cancel()
		connection, now := http.NewResponseController(w), time.Now()
		_ = connection.SetReadDeadline(now)
		_ = connection.SetWriteDeadline(now.Add(finalWriteTimeout))
	})
	return ctx, func() {
		stop()
		cancel()
	}
}

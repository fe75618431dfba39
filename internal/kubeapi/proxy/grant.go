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

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
)

const (
	// tokenBytes makes tokens of 256 bits.
	tokenBytes = 32
	// lastWords is how long a client may take for what is still written to it when its
	// token has ended.
	lastWords = time.Second
)

// grants holds those of live runs by the digest of their token: a look-up by digest
// takes the same time for every wrong token, however much of it is right, and a copy of
// the manager's memory gives no token away.
type grants struct {
	mu   sync.RWMutex
	live map[[sha256.Size]byte]*grant
}

// grant is what one run may do, and what it has begun.
type grant struct {
	session *access.Session
	// ended is done when the token is dead.
	ended context.Context //nolint:containedctx // It is the life of the token, which outlives every call.
	end   context.CancelFunc
	// requests are those that are not answered yet.
	requests sync.WaitGroup
}

// Grant opens the proxy for one run of the owner. It returns a kubeconfig whose
// token acts for that owner, and the function that ends the token, together with
// all requests and streams that it began. The default namespace of the kubeconfig is
// the owner's.
func (p *Proxy) Grant(owner access.Owner) (kubeconfig []byte, revoke func(), err error) {
	secret := make([]byte, tokenBytes)
	if _, err := rand.Read(secret); err != nil {
		return nil, nil, fmt.Errorf("make a token for %s: %w", owner, err)
	}
	token := base64.RawURLEncoding.EncodeToString(secret)
	kubeconfig, err = clientcmd.Write(p.kubeconfig(token, owner.Namespace))
	if err != nil {
		return nil, nil, fmt.Errorf("write the kubeconfig for %s: %w", owner, err)
	}
	g := &grant{session: &access.Session{Owner: owner}}
	g.ended, g.end = context.WithCancel(context.Background())
	remove := p.grants.add(token, g)
	return kubeconfig, sync.OnceFunc(func() {
		remove()
		g.end()
		go p.tellEnd(g)
	}), nil
}

// tellEnd tells the followers that the session is over, when all of its writes are.
func (p *Proxy) tellEnd(g *grant) {
	g.requests.Wait()
	for _, follower := range p.observers {
		follower.SessionEnded(g.session)
	}
}

func (p *Proxy) kubeconfig(token, namespace string) clientcmdapi.Config {
	const name = "ensign"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + p.address, CertificateAuthorityData: p.ca}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	config.CurrentContext = name
	return *config
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

// authenticate finds the grant by the request's bearer token, and counts the request
// among its own until done is called. A request with more than one Authorization header
// is nobody's.
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

// Knows reports whether the request carries the token of a live run.
func (p *Proxy) Knows(r *http.Request) bool {
	_, done, ok := p.grants.authenticate(r)
	if ok {
		done()
	}
	return ok
}

// during returns a context that ends with the token too. The client is not waited for after
// that.
func (g *grant) during(ctx context.Context, w http.ResponseWriter) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.ended, func() {
		cancel()
		connection, now := http.NewResponseController(w), time.Now()
		_ = connection.SetReadDeadline(now)
		_ = connection.SetWriteDeadline(now.Add(lastWords))
	})
	return ctx, func() {
		stop()
		cancel()
	}
}

package proxy

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/ensign-operator/ensign/internal/access"
)

// tokenBytes makes tokens of 256 bits.
const tokenBytes = 32

// grants holds the sessions of live runs by the digest of their token: a look-up
// by digest takes the same time for every wrong token, however much of it is
// right, and a copy of the manager's memory gives no token away.
type grants struct {
	mu       sync.RWMutex
	sessions map[[sha256.Size]byte]*access.Session
}

// Grant opens the proxy for one run of the owner. It returns a kubeconfig whose
// token acts for that owner, and the function that ends the token. The default
// namespace of the kubeconfig is the owner's.
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
	return kubeconfig, p.grants.add(token, &access.Session{Owner: owner}), nil
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

func (g *grants) add(token string, session *access.Session) (revoke func()) {
	digest := sha256.Sum256([]byte(token))
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sessions == nil {
		g.sessions = map[[sha256.Size]byte]*access.Session{}
	}
	g.sessions[digest] = session
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.sessions, digest)
	}
}

// authenticate finds the session by the request's bearer token. A request with
// more than one Authorization header is nobody's.
func (g *grants) authenticate(r *http.Request) (*access.Session, bool) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return nil, false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return nil, false
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	session, ok := g.sessions[sha256.Sum256([]byte(strings.TrimSpace(token)))]
	return session, ok
}

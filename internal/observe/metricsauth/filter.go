// Package metricsauth lets only those read the manager's metrics whom the API server allows it: it
// has the reader's token reviewed (TokenReview), and asks whether the account may get the path
// (SubjectAccessReview).
//
// controller-runtime has such a filter, which links the API server's own library, with gRPC, CEL
// and tracing: 10 MB of the manager.
package metricsauth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// reviewTimeout bounds a review, with the wait for its turn. A scraper waits 10 s by default.
	reviewTimeout = 10 * time.Second
	// allowedFor is how long a reader may go on after the loss of its token or right, refusedFor
	// how long it is refused after it got them.
	allowedFor = time.Minute
	refusedFor = 10 * time.Second
	// maxReviews bounds the reviews at a time, of all clients together.
	maxReviews = 4
	// maxKept bounds the verdicts of each kind.
	maxKept = 1024
	// maxToken is the length from which nothing is a token.
	maxToken = 32 << 10
)

// Filter returns the filter of a metrics endpoint. It has the type of metrics/server's
// Options.FilterProvider.
func Filter(config *rest.Config, client *http.Client) (server.Filter, error) {
	tokens, err := authenticationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("review the tokens of readers of metrics: %w", err)
	}
	access, err := authorizationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("review the rights of readers of metrics: %w", err)
	}
	return newReviewer(tokens.TokenReviews(), access.SubjectAccessReviews(), time.Now).filter, nil
}

func newReviewer(tokens authenticationclient.TokenReviewInterface, access authorizationclient.SubjectAccessReviewInterface, now func() time.Time) *reviewer {
	return &reviewer{
		tokens: tokens, access: access, now: now, turns: make(chan struct{}, maxReviews),
		allowed: verdicts{}, refused: verdicts{},
	}
}

// request is a reader's request: token, verb and path.
type request struct{ token, verb, path string }

// digest replaces a request in memory, where neither its token nor its length may stay.
func (r request) digest() [sha256.Size]byte {
	return sha256.Sum256([]byte(r.token + "\n" + r.verb + "\n" + r.path)) // A header has no line break.
}

// verdict is the HTTP status for a request, and when it has to be asked for again.
type verdict struct {
	status int
	until  time.Time
}

type verdicts map[[sha256.Size]byte]verdict

// add keeps a verdict, and makes room for it first.
func (v verdicts) add(key [sha256.Size]byte, one verdict, now time.Time) {
	if len(v) >= maxKept {
		maps.DeleteFunc(v, func(_ [sha256.Size]byte, old verdict) bool { return !now.Before(old.until) })
	}
	for old := range v {
		if len(v) < maxKept {
			break
		}
		delete(v, old)
	}
	v[key] = one
}

type reviewer struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	now    func() time.Time
	turns  chan struct{} // has an element for each review that is going on

	mu sync.Mutex
	// allowed is apart from refused, so that readers who invent tokens cannot displace its verdicts.
	allowed, refused verdicts
	// quietUntil is when the next error may be logged.
	quietUntil time.Time
}

func (r *reviewer) filter(log logr.Logger, metrics http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch status, err := r.review(req); {
		case req.Context().Err() != nil: // The client is gone.
		case err != nil:
			if r.mayLog() {
				log.Error(err, "could not check the rights of a client that reads metrics")
			}
			http.Error(w, "the manager could not check the client's rights at the API server; the manager's log has the error", http.StatusInternalServerError)
		case status != http.StatusOK:
			http.Error(w, http.StatusText(status), status)
		default:
			metrics.ServeHTTP(w, req)
		}
	}), nil
}

// review returns the HTTP status for a request: 200 if its reader may read.
func (r *reviewer) review(req *http.Request) (status int, err error) {
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken {
		return http.StatusUnauthorized, nil
	}
	asked := request{token, strings.ToLower(req.Method), req.URL.Path}
	key := asked.digest()
	if status, known := r.known(key); known {
		return status, nil
	}
	ctx, cancel := context.WithTimeout(req.Context(), reviewTimeout)
	defer cancel()
	select {
	case r.turns <- struct{}{}:
		defer func() { <-r.turns }()
	case <-ctx.Done():
		return http.StatusServiceUnavailable, nil
	}
	if status, known := r.known(key); known { // Another request asked first.
		return status, nil
	}
	status, err = r.ask(ctx, asked)
	if err == nil {
		r.keep(key, status)
	}
	return status, err
}

func (r *reviewer) ask(ctx context.Context, asked request) (status int, err error) {
	account, err := r.tokens.Create(ctx, &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: asked.token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("review the token: %w", err)
	}
	if !account.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := account.Status.User
	review := &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: map[string]authorization.ExtraValue{},
		NonResourceAttributes: &authorization.NonResourceAttributes{Verb: asked.verb, Path: asked.path},
	}}
	for key, values := range user.Extra {
		review.Spec.Extra[key] = authorization.ExtraValue(values)
	}
	if review, err = r.access.Create(ctx, review, metav1.CreateOptions{}); err != nil {
		return 0, fmt.Errorf("review the rights of %q: %w", user.Username, err)
	}
	if !review.Status.Allowed || review.Status.Denied {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

func (r *reviewer) known(key [sha256.Size]byte) (status int, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, known := r.allowed[key]
	if !known {
		v, known = r.refused[key]
	}
	return v.status, known && r.now().Before(v.until)
}

// keep replaces the known status of a request.
func (r *reviewer) keep(key [sha256.Size]byte, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	delete(r.allowed, key)
	delete(r.refused, key)
	if status == http.StatusOK {
		r.allowed.add(key, verdict{status, now.Add(allowedFor)}, now)
	} else {
		r.refused.add(key, verdict{status, now.Add(refusedFor)}, now)
	}
}

// mayLog reports whether to log an error: one in each refusedFor, because anybody can cause them
// while the API server is away.
func (r *reviewer) mayLog() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if now.Before(r.quietUntil) {
		return false
	}
	r.quietUntil = now.Add(refusedFor)
	return true
}

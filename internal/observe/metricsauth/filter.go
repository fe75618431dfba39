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
	// patience bounds a review. A scraper waits 10 s by default.
	patience = 10 * time.Second
	// allowedFor is how long a reader may go on after the loss of its token or right, refusedFor
	// how long it is refused after it got them.
	allowedFor = time.Minute
	refusedFor = 10 * time.Second
	// maxKept bounds the memory for readers that invent tokens.
	maxKept = 1024
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
	r := &reviewer{tokens: tokens.TokenReviews(), access: access.SubjectAccessReviews(), now: time.Now, kept: map[request]verdict{}}
	return r.filter, nil
}

// request is what a reader asks for. Of its token only the digest is kept.
type request struct {
	token      [sha256.Size]byte
	verb, path string
}

// verdict is the HTTP status for a request, and when it has to be asked for again.
type verdict struct {
	status int
	until  time.Time
}

type reviewer struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	now    func() time.Time

	mu   sync.Mutex
	kept map[request]verdict
}

func (r *reviewer) filter(log logr.Logger, metrics http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch status, err := r.review(req); {
		case err != nil:
			log.Error(err, "review a reader of metrics")
			http.Error(w, "the reader could not be reviewed", http.StatusInternalServerError)
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
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized, nil
	}
	asked := request{sha256.Sum256([]byte(token)), strings.ToLower(req.Method), req.URL.Path}
	if status, known := r.known(asked); known {
		return status, nil
	}
	ctx, cancel := context.WithTimeout(req.Context(), patience)
	defer cancel()
	status, err = r.ask(ctx, token, asked)
	if err == nil {
		r.keep(asked, status)
	}
	return status, err
}

func (r *reviewer) ask(ctx context.Context, token string, asked request) (status int, err error) {
	account, err := r.tokens.Create(ctx, &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
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

func (r *reviewer) known(asked request) (status int, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, known := r.kept[asked]
	return v.status, known && r.now().Before(v.until)
}

func (r *reviewer) keep(asked request, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) >= maxKept {
		clear(r.kept)
	}
	v := verdict{status, r.now().Add(refusedFor)}
	if status == http.StatusOK {
		v.until = r.now().Add(allowedFor)
	}
	r.kept[asked] = v
}

package upstream

import (
	"context"
	"net/http"

	"k8s.io/client-go/transport"
)

type usernameKey struct{}

// As returns a context whose requests are made in the name of the user, whatever the upstream does
// with them. "" leaves them in the manager's own.
func As(ctx context.Context, username string) context.Context {
	if username == "" {
		return ctx
	}
	return context.WithValue(ctx, usernameKey{}, username)
}

// inNames makes the requests of a context in the name that it has. The API server adds the groups
// of a service account by itself.
type inNames struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (n inNames) RoundTrip(r *http.Request) (*http.Response, error) {
	if username, ok := r.Context().Value(usernameKey{}).(string); ok {
		r = r.Clone(r.Context())
		r.Header.Set(transport.ImpersonateUserHeader, username)
	}
	return n.RoundTripper.RoundTrip(r)
}

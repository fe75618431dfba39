package operator

import (
	"net/http"
	"strings"
	"sync"
)

// notFoundPaths has the paths of requests that the API server has answered with 404.
type notFoundPaths struct {
	mu    sync.Mutex
	paths map[string]bool
}

// watch returns a transport that notes the objects that the API server does not find.
func (m *notFoundPaths) watch(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil && response.StatusCode == http.StatusNotFound {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.paths == nil {
				m.paths = map[string]bool{}
			}
			m.paths[strings.TrimSuffix(request.URL.Path, "/status")] = true
		}
		return response, err
	})
}

// take reports whether the path was not found since the last take.
func (m *notFoundPaths) take(path string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.paths[path]
	delete(m.paths, path)
	return was
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

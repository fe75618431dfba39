package operator

import (
	"net/http"
	"strings"
	"sync"
)

// missed keeps the paths for which the API server has answered that there is no such object.
type missed struct {
	mu    sync.Mutex
	paths map[string]bool
}

// watch returns a transport that notes the objects that the API server does not find.
func (m *missed) watch(next http.RoundTripper) http.RoundTripper {
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

// take reports whether the object of the path was missed since it was asked last.
func (m *missed) take(path string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.paths[path]
	delete(m.paths, path)
	return was
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

package operator

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestWhatRunsMissIsToldOnce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/there" {
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	m := &notFoundPaths{}
	for _, path := range []string{"/there", "/a/status", "/b"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := m.watch(http.DefaultTransport).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	for path, want := range map[string]bool{"/there": false, "/a": true, "/b": true, "/c": false} {
		if got := m.take(path); got != want {
			t.Errorf("%s: got %t", path, got)
		}
		if m.take(path) {
			t.Errorf("%s: told twice", path)
		}
	}
}

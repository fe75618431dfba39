package usermetrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"net/http"
	"net/http/httptest"
)

// FuzzPosts shows that no two posts, whatever they say, make the metrics unreadable.
func FuzzPosts(f *testing.F) {
	f.Add(`{"name": "a", "histogram": {"observe": 1}}`, `{"name": "a_sum", "counter": {"increment": true}}`)
	f.Add(`{"name": "b_count", "gauge": {"set": -0.0}}`, `{"name": "b", "summary": {"observe": 1e308}}`)
	f.Add(`{"name": "c", "description": "\u0000\n\"\\", "counter": {"add": 1e308}}`, `{"name": "c", "counter": {"add": 1e308}}`)
	f.Add(`{"name": "d_total", "counter": {}}`, `{"name": "d", "gauge": {"sub": 1, "subtract": null}}`)
	f.Add(`{"Name": "e", "NAME": "e{", "gauge": {"set": 1}}`, `{"name": "go_x", "gauge": {"set": 1}}`)
	f.Fuzz(func(t *testing.T, first, second string) {
		shown := prometheus.NewPedanticRegistry()
		registry := NewRegistry(shown)
		taken := 0
		for _, body := range []string{first, second} {
			if p, err := parse(strings.NewReader(body)); err == nil && registry.apply(p) == nil {
				taken++
			}
		}
		recorder := httptest.NewRecorder()
		promhttp.HandlerFor(shown, promhttp.HandlerOpts{}).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if recorder.Code != http.StatusOK || (taken > 0) != strings.Contains(recorder.Body.String(), "# TYPE") {
			t.Errorf("after %d posts: %d %s", taken, recorder.Code, recorder.Body)
		}
		for line := range strings.Lines(recorder.Body.String()) {
			if isReserved(line) {
				t.Errorf("shows %q", line)
			}
		}
	})
}

package operator

import (
	"net/http"
	"testing"
)

func TestOnlyDryRunsAreSent(t *testing.T) {
	sent := 0
	transport := OnlyDryRuns(roundTripper(func(*http.Request) (*http.Response, error) {
		sent++
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}))
	for _, test := range []struct {
		method, query string
		want          bool
	}{
		{http.MethodGet, "", true}, {http.MethodGet, "?watch=true", true}, {http.MethodPatch, "?dryRun=All&force=true", true}, {http.MethodPost, "?dryRun=All", true},
		{http.MethodPost, "", false}, {http.MethodPatch, "?force=true", false}, {http.MethodDelete, "", false}, {http.MethodPut, "?dryRun=", false}, {http.MethodConnect, "", false},
	} {
		request, err := http.NewRequestWithContext(t.Context(), test.method, "https://server/api/v1/namespaces/a/configmaps/b"+test.query, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		before := sent
		response, err := transport.RoundTrip(request)
		if err == nil {
			err = response.Body.Close()
		}
		if got := sent > before; got != test.want || got != (err == nil) {
			t.Errorf("%s%s: sent %t, %v", test.method, test.query, got, err)
		}
	}
}

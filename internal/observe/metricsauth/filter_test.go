package metricsauth

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// apiServer knows the account of each token, and lets only the group scrapers of it get /metrics.
type apiServer struct {
	accounts map[string]authentication.UserInfo
	fails    string // the resource whose reviews fail
	reviews  int
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.reviews++
	w.Header().Set("Content-Type", "application/json")
	token, access := authentication.TokenReview{}, authorization.SubjectAccessReview{}
	switch path := req.URL.Path; {
	case s.fails != "" && path[len(path)-len(s.fails):] == s.fails:
		w.WriteHeader(http.StatusServiceUnavailable)
	case path == "/apis/authentication.k8s.io/v1/tokenreviews":
		_ = json.NewDecoder(req.Body).Decode(&token)
		token.Status.User, token.Status.Authenticated = s.accounts[token.Spec.Token], s.accounts[token.Spec.Token].Username != ""
		_ = json.NewEncoder(w).Encode(token)
	case path == "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		_ = json.NewDecoder(req.Body).Decode(&access)
		of, what := access.Spec, access.Spec.NonResourceAttributes
		access.Status.Allowed = slices.Contains(of.Groups, "scrapers") && of.User == "good" && of.UID == "7" && of.Extra["scope"][0] == "all" &&
			what.Verb == "get" && what.Path == "/metrics"
		_ = json.NewEncoder(w).Encode(access)
	}
}

// endpoint is a metrics endpoint behind the filter, at a time that a test sets.
type endpoint struct {
	http.Handler

	now time.Time
}

func newEndpoint(t *testing.T, api *apiServer) *endpoint {
	t.Helper()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	tokens, access := authenticationclient.NewForConfigOrDie(config), authorizationclient.NewForConfigOrDie(config)
	e := &endpoint{now: time.Unix(1000, 0)}
	r := &reviewer{tokens: tokens.TokenReviews(), access: access.SubjectAccessReviews(), now: func() time.Time { return e.now }, kept: map[request]verdict{}}
	var err error
	if e.Handler, err = r.filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "metrics") })); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *endpoint) get(method, path, authorization string) (status int, body string) {
	req, answer := httptest.NewRequest(method, path, http.NoBody), httptest.NewRecorder()
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	e.ServeHTTP(answer, req)
	return answer.Code, answer.Body.String()
}

func known() map[string]authentication.UserInfo {
	return map[string]authentication.UserInfo{
		"T":     {Username: "good", UID: "7", Groups: []string{"scrapers"}, Extra: map[string]authentication.ExtraValue{"scope": {"all"}}},
		"other": {Username: "other", UID: "8", Groups: []string{"people"}},
	}
}

func TestWhoMayReadMetrics(t *testing.T) {
	for why, test := range map[string]struct {
		method, path, authorization, fails string
		want, reviews                      int
	}{
		"whom the API server allows it":      {"GET", "/metrics", "Bearer T", "", 200, 2},
		"the scheme in any spelling":         {"GET", "/metrics", "bearer  T ", "", 200, 2},
		"nobody without a token":             {"GET", "/metrics", "", "", 401, 0},
		"nobody with an empty one":           {"GET", "/metrics", "Bearer ", "", 401, 0},
		"nobody by a password":               {"GET", "/metrics", "Basic T", "", 401, 0},
		"nobody whom the API server rejects": {"GET", "/metrics", "Bearer unknown", "", 401, 1},
		"nobody without the right":           {"GET", "/metrics", "Bearer other", "", 403, 2},
		"nothing but what was asked for":     {"GET", "/debug", "Bearer T", "", 403, 2},
		"by no other verb":                   {"POST", "/metrics", "Bearer T", "", 403, 2},
		"nobody while tokens can't be asked": {"GET", "/metrics", "Bearer T", "tokenreviews", 500, 1},
		"nobody while rights can't be asked": {"GET", "/metrics", "Bearer T", "subjectaccessreviews", 500, 2},
	} {
		t.Run(why, func(t *testing.T) {
			api := &apiServer{accounts: known(), fails: test.fails}
			status, body := newEndpoint(t, api).get(test.method, test.path, test.authorization)
			if status != test.want || api.reviews != test.reviews || (body == "metrics") != (test.want == 200) {
				t.Errorf("got %d, %q after %d reviews, want %d after %d", status, body, api.reviews, test.want, test.reviews)
			}
		})
	}
}

func TestAVerdictIsKeptForAWhile(t *testing.T) {
	api := &apiServer{accounts: known()}
	e := newEndpoint(t, api)
	for i, step := range []struct {
		after         time.Duration
		token         string
		change        func()
		want, reviews int
	}{
		{0, "T", func() {}, 200, 2},
		{allowedFor - time.Second, "T", func() { delete(api.accounts, "T") }, 200, 2},
		{2 * time.Second, "T", func() {}, 401, 3},
		{refusedFor - time.Second, "T", func() { api.accounts = known() }, 401, 3},
		{2 * time.Second, "T", func() { api.fails = "tokenreviews" }, 500, 4},
		{0, "T", func() { api.fails = "" }, 200, 6}, // A review that failed is no verdict.
		{0, "other", func() {}, 403, 8},             // Nor is one for another token.
	} {
		e.now = e.now.Add(step.after)
		step.change()
		if status, _ := e.get("GET", "/metrics", "Bearer "+step.token); status != step.want || api.reviews != step.reviews {
			t.Fatalf("step %d: got %d after %d reviews, want %d after %d", i, status, api.reviews, step.want, step.reviews)
		}
	}
}

func TestInventedTokensTakeLittleMemory(t *testing.T) {
	r := &reviewer{now: time.Now, kept: map[request]verdict{}}
	for i := range 3 * maxKept {
		r.keep(request{path: fmt.Sprint(i)}, http.StatusUnauthorized)
	}
	if len(r.kept) > maxKept {
		t.Errorf("%d verdicts are kept", len(r.kept))
	}
}

func TestTheFilterIsMadeOfAConfiguration(t *testing.T) {
	if filter, err := Filter(&rest.Config{Host: "https://127.0.0.1:1"}, http.DefaultClient); err != nil || filter == nil {
		t.Errorf("got %v", err)
	}
}

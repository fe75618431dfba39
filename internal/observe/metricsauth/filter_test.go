package metricsauth

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
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
	// holds keeps back the answer of a review until it ends.
	holds func(*http.Request)
	mu    sync.Mutex
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	s.reviews++
	s.mu.Unlock()
	if s.holds != nil {
		s.holds(req)
	}
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

	now    time.Time
	logged []string
}

func newEndpoint(t *testing.T, api *apiServer) *endpoint {
	t.Helper()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	tokens, access := authenticationclient.NewForConfigOrDie(config), authorizationclient.NewForConfigOrDie(config)
	e := &endpoint{now: time.Unix(1000, 0)}
	r := newReviewer(tokens.TokenReviews(), access.SubjectAccessReviews(), func() time.Time { return e.now })
	log := funcr.New(func(_, args string) { e.logged = append(e.logged, args) }, funcr.Options{})
	var err error
	if e.Handler, err = r.filter(log, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "metrics") })); err != nil {
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

// What a token or a path takes in memory does not depend on its length, and nobody who invents
// tokens makes the manager forget whom the API server allows to read.
func TestInventedTokensDisplaceNothing(t *testing.T) {
	api := &apiServer{accounts: known()}
	e := newEndpoint(t, api)
	if status, _ := e.get("GET", "/metrics", "Bearer T"); status != 200 {
		t.Fatalf("got %d", status)
	}
	for i := range 2*maxKept + 1 {
		if status, _ := e.get("GET", "/metrics", fmt.Sprint("Bearer invented", i)); status != 401 {
			t.Fatalf("got %d", status)
		}
	}
	before := api.reviews
	if status, _ := e.get("GET", "/metrics", "Bearer T"); status != 200 || api.reviews != before {
		t.Errorf("got %d after %d more reviews", status, api.reviews-before)
	}
	v := verdicts{}
	for i := range 3 * maxKept {
		v.add(request{path: fmt.Sprint(i)}.digest(), verdict{until: time.Unix(2000, 0)}, time.Unix(1000, 0))
	}
	if len(v) != maxKept {
		t.Errorf("%d verdicts are kept", len(v))
	}
	if status, _ := e.get("GET", "/metrics", "Bearer "+strings.Repeat("x", maxToken+1)); status != 401 || api.reviews != before {
		t.Errorf("a text of more than %d bytes was reviewed as a token: got %d", maxToken, status)
	}
}

func TestFewReviewsAreDoneAtOnce(t *testing.T) {
	var going, arrived atomic.Int32
	var tooMany atomic.Bool
	release := make(chan struct{})
	api := &apiServer{accounts: known()}
	api.holds = func(*http.Request) {
		if going.Add(1) > maxReviews {
			tooMany.Store(true)
		}
		arrived.Add(1)
		<-release
		going.Add(-1)
	}
	e := newEndpoint(t, api)
	var readers sync.WaitGroup
	for i := range 10 * maxReviews {
		readers.Go(func() { e.get("GET", "/metrics", fmt.Sprint("Bearer invented", i)) })
	}
	for arrived.Load() < maxReviews {
		runtime.Gosched()
	}
	// A reader whose verdict is needed waits for its turn, and gives up with its scraper.
	ctx, cancel := context.WithCancel(t.Context())
	req := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody).WithContext(ctx)
	req.Header.Set("Authorization", "Bearer T")
	readers.Go(func() { e.ServeHTTP(httptest.NewRecorder(), req) })
	cancel()
	close(release)
	readers.Wait()
	if tooMany.Load() {
		t.Errorf("more than %d reviews at once", maxReviews)
	}
	if len(e.logged) != 0 {
		t.Errorf("logged %q", e.logged)
	}
}

// Anybody can abort requests, and cause errors while the API server is away.
func TestStrangersFillNoLog(t *testing.T) {
	api := &apiServer{accounts: known(), fails: "tokenreviews"}
	e := newEndpoint(t, api)
	for i := range 20 {
		e.get("GET", "/metrics", fmt.Sprint("Bearer invented", i))
	}
	if len(e.logged) != 1 {
		t.Errorf("logged %d lines for 20 errors", len(e.logged))
	}
	e.now = e.now.Add(refusedFor)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		req := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody).WithContext(ctx)
		req.Header.Set("Authorization", "Bearer invented")
		api.holds = func(*http.Request) { cancel() }
		e.ServeHTTP(httptest.NewRecorder(), req)
		cancel()
	}
	if len(e.logged) != 1 {
		t.Errorf("logged for requests that were aborted: %q", e.logged[1:])
	}
}

func TestTheFilterIsMadeOfAConfiguration(t *testing.T) {
	if filter, err := Filter(&rest.Config{Host: "https://127.0.0.1:1"}, http.DefaultClient); err != nil || filter == nil {
		t.Errorf("got %v", err)
	}
}

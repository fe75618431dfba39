package apiproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

const widgets = "/apis/g.io/v1/namespaces/ns/widgets"

// server is an API server that says yes to everything and remembers it.
type server struct {
	mu       sync.Mutex
	requests []string
	tokens   []string
	events   chan string // of the one watch
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.requests = append(s.requests, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
	s.tokens = append(s.tokens, r.Header.Get("Authorization"))
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if !r.URL.Query().Has("watch") {
		fmt.Fprintf(w, `{"said": %q}`, r.Method)
		return
	}
	flush := w.(http.Flusher).Flush
	flush()
	for {
		select {
		case e := <-s.events:
			fmt.Fprintln(w, e)
			flush()
		case <-r.Context().Done():
			return
		}
	}
}

func (s *server) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func start(t *testing.T) (*server, *Proxy) {
	t.Helper()
	upstream := &server{events: make(chan string, 10)}
	listening := httptest.NewServer(upstream)
	t.Cleanup(listening.Close)
	p, err := Start(&rest.Config{Host: listening.URL, BearerToken: "the proxy's"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return upstream, p
}

// ask sends one request on a connection of its own and gives status and body, or
// "broken".
func ask(t *testing.T, method, url, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "broken"
	}
	defer func() { _ = response.Body.Close() }()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(response.StatusCode, " ", response.Header.Get("Retry-After"), " ", string(got))
}

func TestFaults(t *testing.T) {
	const refusal = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"a fault that a test asked for: `
	for name, test := range map[string]struct {
		fault          Fault
		wantClient     string
		wantForwarded  bool
		upstream, code int
	}{
		"no fault at all":                {Fault{}, `200  {"said": "PATCH"}`, true, 200, 200},
		"a conflict":                     {Refuse(409), "409  " + refusal + `Conflict","reason":"Conflict","code":409}`, false, 0, 409},
		"too many requests":              {Throttle(2 * time.Second), "429 2 " + refusal + `Too Many Requests","reason":"TooManyRequests","code":429}`, false, 0, 429},
		"a reset before anything":        {Reset(), "broken", false, 0, 0},
		"an answer that is lost":         {LoseAnswer(), "broken", true, 200, 0},
		"a timeout":                      {Expire(time.Millisecond), "504  " + refusal + `Gateway Timeout","reason":"Timeout","code":504}`, false, 0, 504},
		"an object as it was":            {Reply([]byte(`{"old": 1}`)), `200  {"old": 1}`, false, 0, 200},
		"applied, but an error is told":  {Fault{Answer: &Answer{Code: 500}}, "500  " + refusal + `Internal Server Error","reason":"InternalError","code":500}`, true, 200, 500},
		"a delay changes nothing itself": {Fault{Delay: time.Millisecond}, `200  {"said": "PATCH"}`, true, 200, 200},
	} {
		t.Run(name, func(t *testing.T) {
			upstream, p := start(t)
			p.Add(Rule{Name: name, Match: func(r Request) bool { return r.Verb == "patch" }, Fault: test.fault})
			if got := ask(t, "PATCH", p.URL()+widgets+"/w/status", "the body"); got != test.wantClient {
				t.Errorf("the client got %q, want %q", got, test.wantClient)
			}
			want := []string{"PATCH " + widgets + "/w/status the body"}
			if !test.wantForwarded {
				want = nil
			}
			if diff := cmp.Diff(want, upstream.got()); diff != "" {
				t.Errorf("what the API server got (-want +got):\n%s", diff)
			}
			r := answered(t, p, 1)
			if r.Rule != name || r.Upstream != test.upstream || r.Code != test.code || string(r.Body) != "the body" {
				t.Errorf("got %+v in the journal", r)
			}
			if r.Applied() != test.wantForwarded {
				t.Errorf("applied: got %v, want %v", r.Applied(), test.wantForwarded)
			}
		})
	}
}

// answered waits for the end of the request with the number.
func answered(t *testing.T, p *Proxy, seq int) Request {
	t.Helper()
	r, err := p.Wait(t.Context(), func(r Request) bool { return r.Seq == seq && !r.Answered.IsZero() })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestJournalSaysWhatWasAsked(t *testing.T) {
	_, p := start(t)
	for _, r := range [][2]string{
		{"GET", widgets + "?labelSelector=a"}, {"GET", widgets + "/w"}, {"POST", widgets}, {"PUT", widgets + "/w"},
		{"PATCH", widgets + "/w/status"}, {"DELETE", widgets + "/w"}, {"GET", "/api/v1/pods"}, {"GET", "/version"},
	} {
		ask(t, r[0], p.URL()+r[1], "")
	}
	var got []string
	for _, r := range p.Journal() {
		got = append(got, fmt.Sprintf("%d %s %s/%s %s/%s/%s write=%v", r.Seq, r.Verb, r.Group, r.Namespace, r.Resource, r.Name, r.Subresource, r.Write()))
	}
	want := []string{
		"1 list g.io/ns widgets// write=false", "2 get g.io/ns widgets/w/ write=false", "3 create g.io/ns widgets// write=true",
		"4 update g.io/ns widgets/w/ write=true", "5 patch g.io/ns widgets/w/status write=true", "6 delete g.io/ns widgets/w/ write=true",
		"7 list / pods// write=false", "8 get / // write=false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRulesCount(t *testing.T) {
	_, p := start(t)
	patches := func(r Request) bool { return r.Verb == "patch" }
	p.Add(Rule{Name: "second and third", Match: patches, Skip: 1, Times: 2, Fault: Refuse(409)})
	remove := p.Add(Rule{Name: "whatever is left", Match: patches, Times: Always, Fault: Refuse(500)})
	var got []string
	for range 5 {
		got = append(got, ask(t, "PATCH", p.URL()+widgets+"/w", "")[:3])
	}
	remove()
	got = append(got, ask(t, "PATCH", p.URL()+widgets+"/w", "")[:3], ask(t, "GET", p.URL()+widgets+"/w", "")[:3])
	// A rule that skips a request leaves it to the next one.
	if diff := cmp.Diff([]string{"500", "409", "409", "500", "500", "200", "200"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHooksStandAroundTheRequest(t *testing.T) {
	upstream, p := start(t)
	var seen []string
	note := func(when string) func(Request) {
		return func(r Request) {
			seen = append(seen, fmt.Sprintf("%s: %d forwarded, %d", when, len(upstream.got()), r.Upstream))
		}
	}
	p.Add(Rule{Match: func(Request) bool { return true }, Fault: Fault{Before: note("before"), After: note("after")}})
	ask(t, "PATCH", p.URL()+widgets+"/w", "")
	answered(t, p, 1)
	if diff := cmp.Diff([]string{"before: 0 forwarded, 0", "after: 1 forwarded, 200"}, seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCredentials(t *testing.T) {
	upstream, p := start(t)
	ask(t, "GET", p.URL()+widgets, "")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL()+widgets, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer the client's")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if diff := cmp.Diff([]string{"Bearer the proxy's", "Bearer the client's"}, upstream.tokens); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAway(t *testing.T) {
	upstream, p := start(t)
	back := p.Away()
	if got := ask(t, "GET", p.URL()+widgets, ""); got != "broken" {
		t.Errorf("away: got %q", got)
	}
	back()
	back() // Counts once: another who has shut it must not be opened for.
	again := p.Away()
	if got := ask(t, "GET", p.URL()+widgets, ""); got != "broken" {
		t.Errorf("away again: got %q", got)
	}
	again()
	if got := ask(t, "GET", p.URL()+widgets, ""); got != `200  {"said": "GET"}` {
		t.Errorf("back: got %q", got)
	}
	if got := upstream.got(); len(got) != 1 {
		t.Errorf("the API server got %q, want the last request alone", got)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	_, p := start(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := p.Wait(ctx, func(Request) bool { return true }); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}

func TestKubeconfigLeadsThroughTheProxy(t *testing.T) {
	upstream, p := start(t)
	path := t.TempDir() + "/kubeconfig"
	if err := p.WriteKubeconfig(path); err != nil {
		t.Fatal(err)
	}
	config := configOf(t, path)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(config.Host + "/version")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if diff := cmp.Diff([]string{"GET /version"}, upstream.got()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

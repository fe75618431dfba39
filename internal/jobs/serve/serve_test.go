package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/jobs/identity"
	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/pkg/content"
)

// world has a server, and plays what is around it.
type world struct {
	t        *testing.T
	identity *identity.Identity
	server   *Server
	client   *http.Client

	lost     atomic.Bool
	reviewed atomic.Int32
	claimErr error
	events   []json.RawMessage
	results  []wire.Result
	block    bool
	// loseWhile makes the fence close during a request to the API.
	loseDuring bool
	requests   []*http.Request
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t}
	var err error
	if w.identity, err = identity.New(bytes.Repeat([]byte{1}, 32)); err != nil {
		t.Fatal(err)
	}
	w.server, err = New(Options{
		Identity: w.identity, Registry: w, Fence: w, Reviewer: w, API: http.HandlerFunc(w.api), Metrics: http.HandlerFunc(w.api),
		Address: "127.0.0.1:0", Logger: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.server.Server().Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	config, err := identity.ClientTLS(w.identity.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	w.client = &http.Client{Transport: transport}
	return w
}

func (w *world) Held() bool { return !w.lost.Load() }

// Review implements Reviewer: a token is "JOB/POD".
func (w *world) Review(_ context.Context, token string) (Caller, error) {
	w.reviewed.Add(1)
	job, pod, ok := strings.Cut(token, "/")
	switch {
	case token == "unknown":
		return Caller{}, errors.New("the API server is away")
	case !ok:
		return Caller{}, &DeniedError{"no token of a pod"}
	}
	return Caller{Job: types.NamespacedName{Namespace: "ns", Name: job}, JobUID: types.UID(job), PodUID: types.UID(pod)}, nil
}

func (w *world) Claim(_ context.Context, job types.NamespacedName, jobUID, podUID types.UID) (wire.Assignment, error) {
	if w.claimErr != nil {
		return wire.Assignment{}, w.claimErr
	}
	return wire.Assignment{Spec: run.Spec{ID: "run-" + job.Name, UID: string(jobUID + "/" + podUID), Kubeconfig: []byte("the proxy's token")}}, nil
}

func (w *world) Live(jobUID types.UID, runID string) (Live, bool) {
	return w, jobUID == "job" && runID == "run-job"
}

func (w *world) Events(ctx context.Context, first int64, events []json.RawMessage) (int64, error) {
	w.events = append(w.events, events...)
	if w.block {
		<-ctx.Done()
		return first, ctx.Err()
	}
	return first + int64(len(events)), nil
}

func (w *world) Result(_ context.Context, r wire.Result) error {
	w.results = append(w.results, r)
	return nil
}

func (w *world) ProxyToken() string { return "grant" }

func (w *world) api(out http.ResponseWriter, r *http.Request) {
	w.requests = append(w.requests, r)
	if w.loseDuring {
		w.lost.Store(true)
		out.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (w *world) session() string {
	return w.identity.Token(identity.Session{JobUID: "job", PodUID: "pod", RunID: "run-job"})
}

func (w *world) do(method, path, token, body string) (reply, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, "https://"+w.server.Address(), strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.URL.Opaque = path
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, response.Close}, string(answer)
}

// reply is a response that has been read.
type reply struct {
	StatusCode int
	Header     http.Header
	Close      bool
}

func someResult(t *testing.T, id string) string {
	t.Helper()
	encoded, err := json.Marshal(wire.Result{RunID: id, Result: run.Result{Outcome: content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful}, Ended: time.Now()}})
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func TestAPodClaimsTheRunOfItsJob(t *testing.T) {
	w := newWorld(t)
	response, answer := w.do("POST", wire.ClaimPath, "job/pod", "")
	var got wire.Assignment
	if err := json.Unmarshal([]byte(answer), &got); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%v: %d %s", err, response.StatusCode, answer)
	}
	if got.Spec.UID != "job/pod" || got.Spec.Kubeconfig != nil {
		t.Errorf("got %+v", got.Spec)
	}
	if s, ok := w.identity.Session(got.Session); !ok || s != (identity.Session{JobUID: "job", PodUID: "pod", RunID: "run-job"}) {
		t.Errorf("got the session %+v, %t", s, ok)
	}
}

// J8: whoever has no token of a run learns nothing and changes nothing.
func TestWithoutATokenOfARunThereIsNothing(t *testing.T) {
	w := newWorld(t)
	other, err := identity.New(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	foreign := other.Token(identity.Session{JobUID: "job", PodUID: "pod", RunID: "run-job"})
	for path, body := range map[string]string{
		wire.ClaimPath: "", wire.EventsPath: `{"First":1,"Events":[{}]}`, wire.ResultPath: someResult(t, "run-job"), wire.APIPath + "/api/v1/pods": "", wire.MetricsPath: "{}", "/": "", "/healthz": "",
	} {
		for _, token := range []string{"", "x", "nobody", foreign, w.session() + "x"} {
			response, answer := w.do("POST", path, token, body)
			if response.StatusCode != http.StatusUnauthorized || answer != "no token of a run\n" || !response.Close {
				t.Errorf("%s with %q: %d %q", path, token, response.StatusCode, answer)
			}
		}
	}
	if len(w.events)+len(w.results)+len(w.requests) > 0 {
		t.Errorf("events %v, results %v, requests %v", w.events, w.results, w.requests)
	}
	if response, _ := w.do("POST", wire.ClaimPath, w.session(), ""); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("a session's token claims a run: %d", response.StatusCode)
	}
}

func TestAManagerWithoutTheRunSaysSo(t *testing.T) {
	for why, test := range map[string]struct {
		set    func(*world)
		path   string
		token  func(*world) string
		status int
	}{
		"no leader takes a claim":     {func(w *world) { w.lost.Store(true) }, wire.ClaimPath, func(*world) string { return "job/pod" }, 503},
		"no leader takes events":      {func(w *world) { w.lost.Store(true) }, wire.EventsPath, (*world).session, 503},
		"no leader takes a result":    {func(w *world) { w.lost.Store(true) }, wire.ResultPath, (*world).session, 503},
		"no leader forwards":          {func(w *world) { w.lost.Store(true) }, wire.APIPath + "/api", (*world).session, 503},
		"one that loses its lease":    {func(w *world) { w.loseDuring = true }, wire.APIPath + "/api", (*world).session, 503},
		"a run that is not here":      {func(*world) {}, wire.APIPath + "/api", func(w *world) string { return w.identity.Token(identity.Session{JobUID: "job", RunID: "x"}) }, 503},
		"a Job that is not known":     {func(w *world) { w.claimErr = ErrUnknown }, wire.ClaimPath, func(*world) string { return "job/pod" }, 503},
		"an API server that is away":  {func(*world) {}, wire.ClaimPath, func(*world) string { return "unknown" }, 503},
		"another pod was there first": {func(w *world) { w.claimErr = ErrTaken }, wire.ClaimPath, func(*world) string { return "job/pod" }, 409},
	} {
		t.Run(why, func(t *testing.T) {
			w := newWorld(t)
			test.set(w)
			response, answer := w.do("POST", test.path, test.token(w), someResult(t, "run-job"))
			if response.StatusCode != test.status || (response.Header.Get(wire.NotLeaderHeader) != "") != (test.status == 503) {
				t.Errorf("got %d %v %s", response.StatusCode, response.Header, answer)
			}
			if !w.loseDuring && len(w.events)+len(w.results)+len(w.requests) > 0 {
				t.Error("it did something")
			}
			if w.lost.Load() && w.reviewed.Load() > 0 {
				t.Error("a manager that does not lead asks the API server about tokens")
			}
		})
	}
}

func TestEventsAndResultReachTheRun(t *testing.T) {
	w := newWorld(t)
	if response, answer := w.do("POST", wire.EventsPath, w.session(), `{"First":5,"Events":[{"Task":"a"},{"Task":"b"}]}`); response.StatusCode != http.StatusOK || strings.TrimSpace(answer) != `{"Next":7}` {
		t.Errorf("%d %s", response.StatusCode, answer)
	}
	if len(w.events) != 2 || string(w.events[1]) != `{"Task":"b"}` {
		t.Errorf("got %q", w.events)
	}
	if response, answer := w.do("POST", wire.ResultPath, w.session(), someResult(t, "run-job")); response.StatusCode != http.StatusOK || len(w.results) != 1 {
		t.Errorf("%d %s, %v", response.StatusCode, answer, w.results)
	}
	for why, test := range map[string]struct {
		path, body string
		want       int
	}{
		"another run's result":     {wire.ResultPath, someResult(t, "other"), 400},
		"a result of nothing":      {wire.ResultPath, "{}", 400},
		"events that are no JSON":  {wire.EventsPath, "x", 400},
		"events from before first": {wire.EventsPath, `{"First":0}`, 400},
		"endless events":           {wire.EventsPath, `{"First":1,"Events":[{"Task":"` + strings.Repeat("x", wire.MaxEventsBytes) + `"}]}`, 413},
		"an endless result":        {wire.ResultPath, `{"RunID":"` + strings.Repeat("x", wire.MaxResultBytes) + `"}`, 413},
		"a path that nobody knows": {"/v1/x", "", 404},
		"the API without a path":   {wire.APIPath, "", 404},
	} {
		if response, answer := w.do("POST", test.path, w.session(), test.body); response.StatusCode != test.want {
			t.Errorf("%s: %d %s", why, response.StatusCode, answer)
		}
	}
	if len(w.events) != 2 || len(w.results) != 1 {
		t.Errorf("%d events, %d results", len(w.events), len(w.results))
	}
}

func TestRequestsReachTheProxyAsTheRunSentThem(t *testing.T) {
	w := newWorld(t)
	for sent, want := range map[string]string{
		"/v1/api/api/v1/pods?limit=5&a;b": "/api/v1/pods?limit=5&a;b",
		"/v1/api/apis/a%2Fb/":             "/apis/a%2Fb/",
		"/v1/api/api/v1/../secrets":       "/api/v1/../secrets",
		"/v1/api//api":                    "//api",
		"/v1/metrics":                     "/metrics",
	} {
		w.requests = nil
		if response, answer := w.do("GET", sent, w.session(), ""); response.StatusCode != http.StatusOK || len(w.requests) != 1 {
			t.Fatalf("%s: %d %s", sent, response.StatusCode, answer)
		}
		got := w.requests[0]
		if got.URL.RequestURI() != want && got.URL.EscapedPath()+"?"+got.URL.RawQuery != want && got.URL.EscapedPath() != want || got.Header.Get("Authorization") != "Bearer grant" {
			t.Errorf("%s: got %s, %v", sent, got.URL, got.Header)
		}
	}
}

// Strangers may open as many connections as they like, and say nothing.
func TestSilentConnectionsKeepNoAgentOut(t *testing.T) {
	w := newWorld(t)
	for range maxUnauthenticated + 20 {
		conn, err := net.Dial("tcp", w.server.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	if response, answer := w.do("POST", wire.ClaimPath, "job/pod", ""); response.StatusCode != http.StatusOK {
		t.Errorf("%d %s", response.StatusCode, answer)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		w.server.unauthenticated.mu.Lock()
		count := len(w.server.unauthenticated.conns)
		w.server.unauthenticated.mu.Unlock()
		if count <= maxUnauthenticated {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d unauthenticated connections are open", count)
		}
	}
}

package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ensign-operator/ensign/internal/jobs/identity"
	"github.com/ensign-operator/ensign/internal/jobs/serve"
	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// manager plays a manager with the run of one Job.
type manager struct {
	t       *testing.T
	address string
	stop    func()

	mu     sync.Mutex
	leads  bool
	taken  bool
	next   int64
	events []string
	result *wire.Result
	// hold makes the manager take no events.
	hold     bool
	requests []string
	changed  *sync.Cond
}

var shared = func() *identity.Identity {
	i, err := identity.New(make([]byte, 32))
	if err != nil {
		panic(err)
	}
	return i
}()

// startManager starts one at the address, or at any with port 0.
func startManager(t *testing.T, address string) *manager {
	t.Helper()
	m := &manager{t: t, leads: true}
	m.changed = sync.NewCond(&m.mu)
	server, err := serve.New(serve.Options{Identity: shared, Registry: m, Fence: m, Reviewer: m, API: http.HandlerFunc(m.api), Metrics: http.HandlerFunc(m.api), Address: address, Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	m.address = server.Address()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	s := server.Server()
	go func() { done <- s.Start(ctx) }()
	m.stop = sync.OnceFunc(func() {
		m.set(func() { m.leads = false })
		cancel()
		_ = s.Server.Close()
		if err := <-done; err != nil && !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the server ended with %v", err)
		}
	})
	t.Cleanup(m.stop)
	return m
}

func (m *manager) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	m.changed.Broadcast()
}

// until waits for a condition, which is called with the lock held.
func (m *manager) until(what string, condition func() bool) {
	m.t.Helper()
	timer := time.AfterFunc(scratch.WaitTimeout, func() { m.set(func() {}) })
	defer timer.Stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	for began := time.Now(); !condition(); m.changed.Wait() {
		if time.Since(began) >= scratch.WaitTimeout {
			m.t.Fatalf("waited in vain until %s", what)
		}
	}
}

func (m *manager) Held() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leads
}

func (m *manager) Review(_ context.Context, token string) (serve.Caller, error) {
	if token != "pod-token" {
		return serve.Caller{}, &serve.DeniedError{Why: token}
	}
	return serve.Caller{Job: types.NamespacedName{Name: "job"}, JobUID: "job", PodUID: "pod"}, nil
}

func (m *manager) Claim(context.Context, types.NamespacedName, types.UID, types.UID) (wire.Assignment, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken {
		return wire.Assignment{}, serve.ErrTaken
	}
	return wire.Assignment{Spec: run.Spec{ID: "run", CR: "ns/cr"}, Namespace: "ns", Common: wire.Common{UserMetrics: true}}, nil
}

func (m *manager) Live(types.UID, string) (serve.Live, bool) { return m, true }

func (m *manager) Events(_ context.Context, first int64, events []json.RawMessage) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.next == 0 {
		m.next = first
	}
	for i, e := range events {
		if first+int64(i) == m.next && !m.hold {
			m.events, m.next = append(m.events, string(e)), m.next+1
		}
	}
	m.changed.Broadcast()
	return m.next, nil
}

func (m *manager) Result(_ context.Context, r wire.Result) error {
	m.set(func() { m.result = &r })
	return nil
}

func (m *manager) ProxyToken() string { return "grant" }

func (m *manager) api(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.set(func() { m.requests = append(m.requests, r.Method+" "+r.URL.Path+" "+string(body)) })
	switch r.URL.Query().Get("do") {
	case "die": // The manager does, before it answers.
		panic(http.ErrAbortHandler)
	case "watch":
		for i := range 3 {
			_, _ = fmt.Fprintln(w, i)
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	case "upgrade":
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"))
			_, _ = io.Copy(conn, buffered)
			_ = conn.Close()
		}
	}
}

// pod has an agent and what the kubelet gives it.
type pod struct {
	options Options
	environ []string
	term    func()
	ended   chan error
}

func startPod(t *testing.T, program run.Program, addresses ...string) *pod {
	t.Helper()
	p := newPod(t, program, addresses...)
	p.start(t)
	return p
}

func newPod(t *testing.T, program run.Program, addresses ...string) *pod {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("pod-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &pod{ended: make(chan error, 1)}
	p.options = Options{
		Addresses: strings.Join(addresses, ","), PublicKey: shared.PublicKey(), TokenFile: filepath.Join(dir, "token"), TerminationFile: filepath.Join(dir, "termination"), Logger: logr.Discard(),
		NewProgram: func(_ context.Context, _ wire.Assignment, environ []string) (run.Program, func() error, error) {
			p.environ = environ
			if program == nil {
				return nil, nil, errors.New("there is no Python")
			}
			return program, func() error { return nil }, nil
		},
	}
	return p
}

func (p *pod) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	p.term = cancel
	go func() { p.ended <- Run(ctx, p.options) }()
}

func (p *pod) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(2 * scratch.WaitTimeout):
		t.Fatal("the agent did not end")
		return nil
	}
}

func succeeded() run.Result {
	return run.Result{Outcome: content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful}, Started: time.Now(), Ended: time.Now()}
}

// talk reports so many events, and succeeds.
func talk(count int) run.Program {
	return func(_ context.Context, _ run.Spec, emit func([]byte)) run.Result {
		for i := range count {
			emit([]byte(fmt.Sprint(i + 1)))
		}
		return succeeded()
	}
}

// wantAll demands each event once, in their order.
func wantAll(t *testing.T, events []string, count int) {
	t.Helper()
	for i, e := range events {
		if strings.TrimSpace(e) != fmt.Sprint(i+1) {
			t.Fatalf("event %d is %.99q", i+1, e)
		}
	}
	if len(events) != count {
		t.Errorf("%d events, want %d", len(events), count)
	}
}

func (p *pod) message(t *testing.T) wire.Result {
	t.Helper()
	text, err := os.ReadFile(p.options.TerminationFile)
	if err != nil {
		t.Fatal(err)
	}
	r, err := wire.DecodeTermination(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestARunIsExecutedAndHandedOver(t *testing.T) {
	standby, m := startManager(t, "127.0.0.1:0"), startManager(t, "127.0.0.1:0")
	standby.set(func() { standby.leads = false })
	const count = 20000
	p := startPod(t, talk(count), "127.0.0.1:1", standby.address, m.address)
	if err := p.wait(t); err != nil {
		t.Fatal(err)
	}
	wantAll(t, m.events, count)
	if m.result == nil || m.result.Outcome.Verdict != content.Succeeded || m.result.Events != count || m.result.RunID != "run" {
		t.Errorf("got %+v", m.result)
	}
	if got := p.message(t); got.Outcome.Verdict != content.Succeeded || got.Events != count {
		t.Errorf("the termination message is %+v", got)
	}
	if len(standby.events) > 0 || standby.result != nil {
		t.Error("a manager that does not lead has something")
	}
}

func TestARunThatCannotBeginSaysWhy(t *testing.T) {
	m := startManager(t, "127.0.0.1:0")
	p := startPod(t, nil, m.address)
	if err := p.wait(t); err != nil {
		t.Fatal(err)
	}
	if m.result == nil || m.result.Outcome.Reason != content.ReasonRunnerCrashed || m.result.Outcome.Message != "there is no Python" {
		t.Errorf("got %+v", m.result)
	}
}

// The manager restarts, and another one leads then. Neither an event nor the result is lost. What the agent
// has no answer for yet, it tells again: it cannot know whether the first manager has it.
func TestTheNextManagerGetsWhatIsLeft(t *testing.T) {
	first, standby := startManager(t, "127.0.0.1:0"), startManager(t, "127.0.0.1:0")
	standby.set(func() { standby.leads = false })
	goOn := make(chan struct{})
	p := startPod(t, func(_ context.Context, _ run.Spec, emit func([]byte)) run.Result {
		for i := range 200 {
			emit([]byte(fmt.Sprint(i + 1)))
			if i == 99 {
				<-goOn
			}
		}
		return succeeded()
	}, first.address, standby.address)
	first.until("half of the events are here", func() bool { return len(first.events) == 100 })
	first.stop()
	close(goOn)
	standby.set(func() { standby.leads = true })
	if err := p.wait(t); err != nil {
		t.Fatal(err)
	}
	first.set(func() { wantAll(t, first.events, 100) })
	again := 200 - len(standby.events)
	if again < 0 || again > 100 {
		t.Fatalf("the next manager has %d events", len(standby.events))
	}
	wantAll(t, append(first.events[:again:again], standby.events...), 200)
	if standby.result == nil || standby.result.Events != 200 {
		t.Errorf("got %+v", standby.result)
	}
}

// A manager that takes no events makes the run wait, and neither the pod's memory nor an event is at stake.
func TestTheRunWaitsForTheManager(t *testing.T) {
	m := startManager(t, "127.0.0.1:0")
	m.set(func() { m.hold = true })
	text := strings.Repeat(" ", 64<<10)
	const count = 800 // 50 MiB.
	said := make(chan int, count)
	p := startPod(t, func(_ context.Context, _ run.Spec, emit func([]byte)) run.Result {
		for i := range count {
			emit([]byte(fmt.Sprint(i+1) + text))
			said <- i
		}
		return succeeded()
	}, m.address)
	m.until("events arrive", func() bool { return m.next > 0 })
	for len(said) < maxQueued/len(text)-1 {
		time.Sleep(time.Millisecond)
	}
	if len(said) > maxQueued/len(text) {
		t.Errorf("the run has said %d events, and nobody took one", len(said))
	}
	m.set(func() { m.hold = false })
	if err := p.wait(t); err != nil {
		t.Fatal(err)
	}
	wantAll(t, m.events, count)
}

func TestATermEndsTheRunAndItsResultArrives(t *testing.T) {
	m := startManager(t, "127.0.0.1:0")
	p := startPod(t, func(ctx context.Context, _ run.Spec, emit func([]byte)) run.Result {
		emit([]byte("1"))
		<-ctx.Done()
		r := succeeded()
		r.Outcome = content.Outcome{Verdict: content.Canceled, Reason: content.ReasonCanceled}
		return r
	}, m.address)
	m.until("the run is live", func() bool { return len(m.events) == 1 })
	p.term()
	if err := p.wait(t); err != nil || m.result == nil || m.result.Outcome.Verdict != content.Canceled {
		t.Errorf("%v, got %+v", err, m.result)
	}
}

// A TERM while no manager is there leaves the termination message, and ends within the grace period.
func TestWithoutAManagerTheTerminationMessageIsLeft(t *testing.T) {
	m := startManager(t, "127.0.0.1:0")
	p := newPod(t, func(ctx context.Context, _ run.Spec, emit func([]byte)) run.Result {
		emit([]byte("1"))
		<-ctx.Done()
		return succeeded()
	}, m.address)
	p.options.brief = true
	p.start(t)
	m.until("the run is live", func() bool { return len(m.events) == 1 })
	m.stop()
	p.term()
	if err := p.wait(t); err != nil {
		t.Fatal(err)
	}
	if got := p.message(t); got.Outcome.Verdict != content.Succeeded || got.RunID != "run" {
		t.Errorf("got %+v", got)
	}
}

// A second pod of a Job must neither run nor end: its end would end the Job, and the first pod.
func TestASecondPodDoesNothing(t *testing.T) {
	m := startManager(t, "127.0.0.1:0")
	m.set(func() { m.taken = true })
	p := startPod(t, func(context.Context, run.Spec, func([]byte)) run.Result {
		t.Error("it runs")
		return run.Result{}
	}, m.address)
	select {
	case err := <-p.ended:
		t.Fatalf("it ended: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	p.term()
	if err := p.wait(t); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.options.TerminationFile); err == nil {
		t.Error("it has written a termination message")
	}
}

func TestAManagerWithAnotherKeyGetsNothing(t *testing.T) {
	other, err := identity.New(bytes.Repeat([]byte{9}, 32))
	if err != nil {
		t.Fatal(err)
	}
	m := startManager(t, "127.0.0.1:0")
	all, err := newManagers(m.address, other.PublicKey(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://manager/v1/api/api", nil)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := (client{all, time.Millisecond}).RoundTrip(r); !errors.Is(err, identity.ErrOtherServer) {
		t.Errorf("got %v, %v", response, err)
		_ = response.Body.Close()
	}
}

// during runs f with the access of a live run.
func during(t *testing.T, m *manager, f func(p *pod, config *rest.Config, api *http.Client)) {
	t.Helper()
	started, goOn := make(chan []byte), make(chan struct{})
	p := startPod(t, func(_ context.Context, spec run.Spec, _ func([]byte)) run.Result {
		started <- spec.Kubeconfig
		<-goOn
		return succeeded()
	}, m.address)
	config, err := clientcmd.RESTConfigFromKubeConfig(<-started)
	if err != nil {
		t.Fatal(err)
	}
	api, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer close(goOn) // Also if the test gives up.
		f(p, config, api)
	}()
	if err := p.wait(t); err != nil {
		t.Error(err)
	}
}

func send(t *testing.T, api *http.Client, method, url, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := api.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

func TestRequestsWaitForTheNextManager(t *testing.T) {
	m := startManager(t, "127.0.0.1:0")
	during(t, m, func(_ *pod, config *rest.Config, api *http.Client) {
		if code, answer := send(t, api, "POST", config.Host+"/api/v1/namespaces/ns/configmaps", "one"); code != 200 {
			t.Fatal(code, answer)
		}
		m.stop()
		answered := make(chan int, 2)
		go func() {
			// A POST could meet the connection that the manager is about to close, and would not be repeated.
			code, _ := send(t, api, "PUT", config.Host+"/api/v1/namespaces/ns/configmaps", "two")
			answered <- code
		}()
		select {
		case code := <-answered:
			t.Fatalf("answered with %d while no manager is there", code)
		case <-time.After(300 * time.Millisecond):
		}
		next := startManager(t, m.address)
		if code := <-answered; code != 200 || len(next.requests) != 1 || next.requests[0] != "PUT /api/v1/namespaces/ns/configmaps two" {
			t.Errorf("%d, got %v", code, next.requests)
		}
	})
}

// A manager that restarts needs seconds; a request that waits for longer than a minute would hide that there is none.
func TestRequestsWaitForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("nobody is there")
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, away }}
		c := client{&managers{endpoints: []string{"127.0.0.1:1"}, transport: transport, log: logr.Discard()}, relayPatience}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://manager/api", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		response, err := c.RoundTrip(request)
		if err == nil {
			_ = response.Body.Close()
		}
		if took := time.Since(began); !errors.Is(err, away) || took > time.Minute || took < time.Minute-longestPause {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// A manager that dies may have carried out a request: only what does no harm twice is sent again.
func TestARequestIsNotSentTwiceWhereThatDoesHarm(t *testing.T) {
	m := startManager(t, "127.0.0.1:0")
	during(t, m, func(_ *pod, config *rest.Config, api *http.Client) {
		code, answer := send(t, api, "POST", config.Host+"/api/v1/pods?do=die", "x")
		if code != 503 || !strings.Contains(answer, `"kind":"Status"`) || len(m.requests) != 1 {
			t.Errorf("%d %s, got %v", code, answer, m.requests)
		}
		if code, _ := send(t, api, "POST", config.Host+"/api/v1/pods", strings.Repeat("x", maxKept+1)); code != 200 {
			t.Errorf("a long request: %d", code)
		}
	})
}

func TestOnlyTheRunsTokenIsForwarded(t *testing.T) {
	m := startManager(t, "127.0.0.1:0")
	during(t, m, func(p *pod, config *rest.Config, _ *http.Client) {
		config.BearerToken = "x"
		stranger, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		if code, _ := send(t, stranger, "GET", config.Host+"/api", ""); code != 401 || len(m.requests) > 0 {
			t.Errorf("%d, %v", code, m.requests)
		}
		_, url, _ := strings.Cut(strings.Join(p.environ, ""), userMetricsVariable+"=")
		if code, _ := send(t, http.DefaultClient, "POST", url, "{}"); code != 200 || len(m.requests) != 1 || m.requests[0] != "POST /metrics {}" {
			t.Errorf("a metric: %d, %v", code, m.requests)
		}
	})
}

func TestWatchesAndUpgradesPass(t *testing.T) {
	m := startManager(t, "127.0.0.1:0")
	during(t, m, func(_ *pod, config *rest.Config, api *http.Client) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/api/v1/pods?do=watch", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := api.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 6)
		if _, err := io.ReadFull(response.Body, got); err != nil || string(got) != "0\n1\n2\n" {
			t.Errorf("%q, %v", got, err)
		}
		_ = response.Body.Close()

		r.URL.RawQuery = "do=upgrade"
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "echo")
		if response, err = api.Do(r); err != nil { //nolint:bodyclose // It is closed as a stream.
			t.Fatal(err)
		}
		stream, ok := response.Body.(io.ReadWriteCloser)
		if !ok || response.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("%d, %T", response.StatusCode, response.Body)
		}
		if _, err := stream.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(stream, got[:5]); err != nil || string(got[:5]) != "hello" {
			t.Errorf("%q, %v", got, err)
		}
		_ = stream.Close()
	})
}

func TestAddressesAreChecked(t *testing.T) {
	for _, bad := range []string{"", "host", "host:1,"} {
		if _, err := newManagers(bad, shared.PublicKey(), logr.Discard()); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

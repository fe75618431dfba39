package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/ensign-operator/ensign/internal/fence"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// toggle is a fence that a test opens and closes.
type toggle struct{ closed atomic.Bool }

func (f *toggle) Held() bool { return !f.closed.Load() }

func TestNothingIsForwardedWithoutTheLease(t *testing.T) {
	b := newBackend(t)
	lease := &toggle{}
	run, _ := grant(t, start(t, b, proxy.Options{Fence: lease, InjectOwnerRef: true}), owner())
	if code, answer := run.do("GET", "/api/v1/pods", "", nil); code != http.StatusOK {
		t.Fatalf("want requests to pass while the lease is held, got %d %s", code, answer)
	}
	lease.closed.Store(true)
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		code, answer := run.do(method, "/api/v1/namespaces/ns/configmaps", `{"metadata":{"name":"c"}}`, nil)
		if code != http.StatusServiceUnavailable || !strings.Contains(answer, "may have lost its lease") || !strings.Contains(answer, `"reason":"ServiceUnavailable"`) {
			t.Errorf("%s: want 503 with the reason, got %d %s", method, code, answer)
		}
	}
	if len(b.requests) != 1 {
		t.Errorf("%d requests were forwarded", len(b.requests)-1)
	}
}

// slowly is a body whose second half comes when the test lets it.
type slowly struct {
	first, second io.Reader
	half          func()
}

func (s *slowly) Read(b []byte) (int, error) {
	if n, err := s.first.Read(b); !errors.Is(err, io.EOF) {
		return n, err
	}
	if s.half != nil {
		s.half()
		s.half = nil
	}
	return s.second.Read(b)
}

func TestTheLeaseIsAskedForWhenTheBodyHasCome(t *testing.T) {
	b := newBackend(t)
	lease := &toggle{}
	run, _ := grant(t, start(t, b, proxy.Options{Fence: lease, InjectOwnerRef: true}), owner())
	body := &slowly{strings.NewReader(`{"metadata":`), strings.NewReader(`{"name":"c"}}`), func() { lease.closed.Store(true) }}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, run.base+"/api/v1/namespaces/ns/configmaps", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Run", "yes")
	response, err := run.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusServiceUnavailable || len(b.requests) > 0 {
		t.Errorf("want 503 and nothing forwarded, got %d and %d requests", response.StatusCode, len(b.requests))
	}
}

// newStreams is an API server that answers every request with a stream that does not
// end by itself: a watch or, where the client asks for it, an upgraded connection.
func newStreams(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			_, _ = io.WriteString(w, "begun\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		raw, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Errorf("take over the connection: %v", err)
			return
		}
		defer func() { _ = raw.Close() }()
		_, _ = io.WriteString(raw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nbegun\n")
		_, _ = io.Copy(io.Discard, raw)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestOpenStreamsEndWithTheLease(t *testing.T) {
	for name, header := range map[string]http.Header{
		"a watch":                            {},
		"exec, attach, log and port-forward": {"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			lease := fence.New(fence.Options{LeaseDuration: time.Hour, RetryPeriod: time.Second})
			lease.RecordRenewal(fence.Now())
			server := newStreams(t)
			p := startWith(t, &rest.Config{Host: server.URL, Dial: lease.Dial}, proxy.Options{Fence: lease})
			run, _ := grant(t, p, owner())
			ctx, cancel := context.WithTimeout(t.Context(), scratch.WaitTimeout)
			defer cancel()
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, run.base+"/api/v1/namespaces/ns/pods/p/exec", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header = header
			response, err := run.http.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			stream := bufio.NewReader(response.Body)
			if line, err := stream.ReadString('\n'); line != "begun\n" {
				t.Fatalf("want the stream to begin, got %q, %v", line, err)
			}
			lease.RecordLoss()
			if _, err := stream.ReadByte(); err == nil || ctx.Err() != nil {
				t.Errorf("want the stream to end, got %v", err)
			}
		})
	}
}

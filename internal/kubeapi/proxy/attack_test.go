package proxy_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// wire speaks to a proxy byte by byte.
type wire struct {
	t       *testing.T
	address string
	roots   *x509.CertPool
	token   string
	revoke  func()
}

func newWire(t *testing.T, p *proxy.Proxy) wire {
	t.Helper()
	kubeconfig, revoke, err := p.Grant(owner())
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.CAData)
	return wire{t, strings.TrimPrefix(config.Host, "https://"), roots, config.BearerToken, revoke}
}

func (c wire) dial() (net.Conn, error) {
	return tls.DialWithDialer(&net.Dialer{Timeout: time.Minute}, "tcp", c.address, &tls.Config{RootCAs: c.roots, MinVersion: tls.VersionTLS12})
}

// send sends the text, in which TOKEN stands for a live run's, and gives the answers that
// come until the connection ends or there are as many as wanted.
func (c wire) send(text string, answers int) []int {
	c.t.Helper()
	conn, err := c.dial()
	if err != nil {
		c.t.Fatal(err)
	}
	return c.exchange(conn, text, answers)
}

// exchange is send on a connection, which it closes.
func (c wire) exchange(conn net.Conn, text string, answers int) []int {
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(scratch.WaitTimeout))
	_, _ = io.WriteString(conn, strings.ReplaceAll(text, "TOKEN", c.token)) // Without it there is no answer.
	var codes []int
	for reader := bufio.NewReader(conn); len(codes) < answers; {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			break
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		codes = append(codes, response.StatusCode)
		// A further answer would be right behind.
		_ = conn.SetReadDeadline(time.Now().Add(time.Second / 2))
	}
	return codes
}

const head = "Host: 127.0.0.1\r\nAuthorization: Bearer TOKEN\r\nX-Run: yes\r\n"

func TestNothingIsSmuggled(t *testing.T) {
	b := newBackend(t)
	c := newWire(t, start(t, b, proxy.Options{InjectOwnerRef: true}))
	const hidden = "GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, test := range map[string]struct {
		text          string
		wantForwarded int
	}{
		"two lengths":                       {"POST /version HTTP/1.1\r\n" + head + "Content-Length: 5\r\nContent-Length: 50\r\n\r\n" + hidden, 0},
		"a length that is none":             {"POST /version HTTP/1.1\r\n" + head + "Content-Length: +5\r\n\r\n" + hidden, 0},
		"a length and chunks":               {"POST /version HTTP/1.1\r\n" + head + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden, 1},
		"chunks by another name":            {"POST /version HTTP/1.1\r\n" + head + "Transfer-Encoding: xchunked\r\n\r\n" + hidden, 0},
		"chunks twice":                      {"POST /version HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" + hidden, 0},
		"a blank before the colon":          {"POST /version HTTP/1.1\r\n" + head + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + hidden, 0},
		"a header folded":                   {"GET /version HTTP/1.1\r\n" + head + "X-A: b\r\n\tAuthorization: Bearer x\r\n\r\n", 1},
		"a carriage return in a header":     {"GET /version HTTP/1.1\r\n" + head + "X-A: b\rImpersonate-User: root\r\n\r\n", 0},
		"a line feed in the path":           {"GET /version\n/x HTTP/1.1\r\n" + head + "\r\n", 0},
		"two tokens":                        {"GET /version HTTP/1.1\r\n" + head + "Authorization: Bearer x\r\n\r\n", 0},
		"HTTP/2 by hand":                    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0},
		"a body after a GET":                {"GET /version HTTP/1.1\r\n" + head + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(hidden)) + hidden, 1},
		"a request behind one with a token": {"GET /version HTTP/1.1\r\n" + head + "\r\n" + hidden, 1},
		"a request behind a chunked one":    {"POST /version HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n" + hidden, 1},
		"a trailer that is an identity":     {"POST /version HTTP/1.1\r\n" + head + "Trailer: Impersonate-User\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nImpersonate-User: root\r\n\r\n", 1},
		"a header that is too long":         {"GET /version HTTP/1.1\r\n" + head + "X-A: " + strings.Repeat("x", 80<<10) + "\r\n\r\n", 0},
		"a name that is too long":           {"GET /" + strings.Repeat("x", 80<<10) + " HTTP/1.1\r\n" + head + "\r\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.t = t
			before := b.arrivals()
			codes := c.send(test.text, 2)
			if got := b.arrivals() - before; got != test.wantForwarded {
				t.Errorf("want %d forwarded, got %d; answers %v", test.wantForwarded, got, codes)
			}
			if len(codes) == 0 {
				t.Error("want an answer")
			}
			for _, request := range b.since(before) {
				if request.URL.Path != "/version" || request.Header.Get("Impersonate-User") != "" || request.Trailer.Get("Impersonate-User") != "" {
					t.Errorf("%s %s with %v arrived", request.Method, request.URL, request.Header)
				}
			}
		})
	}
}

func TestATokenActsAsItsOwnRunWhateverTheRequestSays(t *testing.T) {
	b := newBackend(t)
	p, other := start(t, b, proxy.Options{InjectOwnerRef: true}), start(t, b, proxy.Options{})
	c, foreign := newWire(t, p), newWire(t, other)
	const create, body = "POST /api/v1/namespaces/ns/configmaps", "Content-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"metadata\":{}}"
	for name, test := range map[string]struct {
		text string
		want int
	}{
		"another manager's token":            {create + " HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + foreign.token + "\r\n" + body, http.StatusUnauthorized},
		"a token in the query":               {create + "?access_token=TOKEN HTTP/1.1\r\nHost: 127.0.0.1\r\n" + body, http.StatusUnauthorized},
		"a token as user info":               {"POST https://TOKEN@127.0.0.1/api/v1/namespaces/ns/configmaps HTTP/1.1\r\nHost: 127.0.0.1\r\n" + body, http.StatusUnauthorized},
		"a token as a cookie":                {create + " HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: Authorization=Bearer TOKEN\r\n" + body, http.StatusUnauthorized},
		"an owner in the query":              {create + "?owner=ns/other&uid=uid-2 HTTP/1.1\r\n" + head + body, http.StatusOK},
		"an owner in a header":               {create + " HTTP/1.1\r\n" + head + "X-Owner: ns/other\r\nX-Remote-User: other\r\n" + body, http.StatusOK},
		"an owner as user info":              {"POST https://other:uid-2@127.0.0.1/api/v1/namespaces/ns/configmaps HTTP/1.1\r\n" + head + body, http.StatusOK},
		"another host":                       {create + " HTTP/1.1\r\nHost: kubernetes.default.svc\r\nAuthorization: Bearer TOKEN\r\nX-Run: yes\r\n" + body, http.StatusOK},
		"a page from elsewhere":              {create + " HTTP/1.1\r\n" + head + "Origin: https://evil.example\r\n" + body, http.StatusOK},
		"somebody else's address":            {create + " HTTP/1.1\r\n" + head + "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Host: a\r\nForwarded: for=10.0.0.1\r\nX-Real-Ip: 10.0.0.1\r\n" + body, http.StatusOK},
		"a token in a WebSocket's protocols": {create + " HTTP/1.1\r\n" + head + "Sec-WebSocket-Protocol: v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.eA\r\n" + body, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			c.t = t
			before := b.arrivals()
			codes := c.send(test.text, 1)
			if len(codes) != 1 || codes[0] != test.want {
				t.Fatalf("want %d, got %v", test.want, codes)
			}
			if test.want != http.StatusOK {
				if b.arrivals() != before {
					t.Error("it was forwarded")
				}
				return
			}
			got, sent := b.requests[before], b.bodies[before]
			if !strings.Contains(sent, "uid-1") || strings.Contains(sent, "uid-2") {
				t.Errorf("want the token's own owner, got %s", sent)
			}
			if got.Host != strings.TrimPrefix(b.URL, "http://") || got.Header.Get("Authorization") != "Bearer the-managers-own" {
				t.Errorf("it arrived for %q as %q", got.Host, got.Header.Get("Authorization"))
			}
			for name, want := range map[string]string{
				"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "", "Forwarded": "", "X-Real-Ip": "", "X-Remote-User": "",
				"Sec-WebSocket-Protocol": map[bool]string{true: "v5.channel.k8s.io"}[strings.Contains(test.text, "Sec-WebSocket-Protocol")],
			} {
				if got.Header.Get(name) != want {
					t.Errorf("want %s %q, got %q", name, want, got.Header.Get(name))
				}
			}
		})
	}
}

// zeros is a body of so many bytes.
type zeros int64

func (z *zeros) Read(b []byte) (int, error) {
	if *z <= 0 {
		return 0, io.EOF
	}
	n := min(int64(len(b)), int64(*z))
	*z -= zeros(n)
	return int(n), nil
}

func TestLargeBodiesAreRefusedOrPassedOn(t *testing.T) {
	const size = 100 << 20
	var arrived atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		arrived.Add(n)
	}))
	t.Cleanup(server.Close)
	run, _ := grant(t, startWith(t, &rest.Config{Host: server.URL}, proxy.Options{InjectOwnerRef: true}), owner())
	for name, test := range map[string]struct {
		method, path string
		want         int
		wantArrived  int64
	}{
		"what is rewritten":    {"POST", "/apis/authorization.k8s.io/v1/x/y/z", 200, size},
		"what goes to a pod":   {"POST", "/api/v1/namespaces/ns/pods/p/proxy/upload", 200, size},
		"an object":            {"PUT", "/api/v1/namespaces/ns/configmaps/c", 413, 0},
		"a patch":              {"PATCH", "/api/v1/namespaces/ns/configmaps/c", 413, 0},
		"a deletion's options": {"DELETE", "/api/v1/namespaces/ns/configmaps/c", 200, size},
	} {
		t.Run(name, func(t *testing.T) {
			arrived.Store(0)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			body := zeros(size)
			request, err := http.NewRequestWithContext(t.Context(), test.method, run.base+test.path, &body)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", "application/merge-patch+json")
			if test.method != http.MethodPatch {
				request.Header.Set("Content-Type", "application/json")
			}
			request.Header.Set("Expect", "100-continue")
			response, err := run.http.Do(request)
			switch {
			case err == nil:
				_ = response.Body.Close()
				if response.StatusCode != test.want {
					t.Errorf("want %d, got %d", test.want, response.StatusCode)
				}
			case test.want == http.StatusOK:
				t.Fatal(err) // Who sends much more than is taken may be cut off.
			}
			if arrived.Load() != test.wantArrived {
				t.Errorf("want %d bytes forwarded, got %d", test.wantArrived, arrived.Load())
			}
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > size/2 {
				t.Errorf("%d bytes were allocated on the way of %d", used, size)
			}
		})
	}
}

// serveWith runs a proxy's server as the test changes it.
func serveWith(t *testing.T, p *proxy.Proxy, change func(*manager.Server)) {
	t.Helper()
	server := p.Server()
	change(server)
	done := make(chan error)
	go func() { done <- server.Server.Serve(server.Listener) }()
	t.Cleanup(func() {
		_ = server.Server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the server ended with %v", err)
		}
	})
}

func TestASlowClientIsNotWaitedFor(t *testing.T) {
	const short, long = 300 * time.Millisecond, time.Hour
	for name, test := range map[string]struct {
		header, body time.Duration // the times that there are for them
		text         string
		want         []int // nil for a connection that just ends
	}{
		"in its header":                          {short, long, "GET /version HTTP/1.1\r\nHost: x\r\n", nil},
		"in the body of an object":               {long, short, "POST /api/v1/namespaces/ns/configmaps HTTP/1.1\r\n" + head + "Content-Length: 50\r\n\r\n{", []int{http.StatusRequestTimeout}},
		"in the chunks of a body, in its middle": {long, short, "POST /api/v1/namespaces/ns/configmaps HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\n\r\n1\r\n", []int{http.StatusRequestTimeout}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t)
			p, err := proxy.New(b.config(), proxy.Options{InjectOwnerRef: true, Logger: logr.Discard()})
			if err != nil {
				t.Fatal(err)
			}
			p.SetBodyTimeout(test.body)
			serveWith(t, p, func(s *manager.Server) { s.Server.ReadHeaderTimeout = test.header })
			if codes := newWire(t, p).send(test.text, 1); fmt.Sprint(codes) != fmt.Sprint(test.want) {
				t.Errorf("want %v, got %v", test.want, codes)
			}
			if b.arrivals() > 0 {
				t.Errorf("%d requests arrived", b.arrivals())
			}
		})
	}
}

// The timeout is doubled until a body comes in time: a busy machine may take long to send one.
func TestAnAnswerMayTakeLongerThanABody(t *testing.T) {
	for _, method := range []string{"POST", "GET"} {
		code, answer := 0, ""
		for timeout := 100 * time.Millisecond; timeout < time.Minute && (code == 0 || code == http.StatusRequestTimeout); timeout *= 2 {
			b := newBackend(t)
			p := start(t, b, proxy.Options{InjectOwnerRef: true})
			p.SetBodyTimeout(timeout)
			b.answer = func(w http.ResponseWriter, r *http.Request) {
				select {
				case <-time.After(5 * timeout):
					_, _ = io.WriteString(w, "{}")
				case <-r.Context().Done():
				}
			}
			run, _ := grant(t, p, owner())
			code, answer = run.do(method, "/api/v1/namespaces/ns/configmaps", `{"metadata":{}}`, nil)
		}
		if code != http.StatusOK {
			t.Errorf("%s: want the answer, got %d %s", method, code, answer)
		}
	}
}

func TestIdleConnectionsKeepNobodyOut(t *testing.T) {
	p, err := proxy.New(newBackend(t).config(), proxy.Options{Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	serveWith(t, p, func(s *manager.Server) {
		if s.Server.ReadHeaderTimeout > 10*time.Second {
			t.Errorf("a connection may be silent for %s", s.Server.ReadHeaderTimeout)
		}
		s.Server.ReadHeaderTimeout = time.Second
	})
	c := newWire(t, p)
	dialSilently(t, c.address, proxy.MaxConnections+100)
	// On a busy machine the client may itself be too slow to be heard at its first try.
	scratch.Eventually(t, "an answer behind connections that say nothing", func() bool {
		conn, err := c.dial()
		return err == nil && slices.Equal(c.exchange(conn, "GET /version HTTP/1.1\r\n"+head+"\r\n", 1), []int{http.StatusOK})
	})
}

// The server tells of a closed connection after the next one is accepted, so that only
// the connections that were accepted can be counted: one more for each that the client
// closes, and no other.
func TestAConnectionBeyondTheLimitWaitsForAnotherToEnd(t *testing.T) {
	p, err := proxy.New(newBackend(t).config(), proxy.Options{Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	var accepted atomic.Int64
	serveWith(t, p, func(s *manager.Server) {
		s.Server.ReadHeaderTimeout = time.Hour // Nothing ends but what the client ends.
		s.Server.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				accepted.Add(1)
			}
		}
	})
	silent := dialSilently(t, newWire(t, p).address, proxy.MaxConnections+100)
	for closed := range 3 {
		want := int64(proxy.MaxConnections + closed)
		scratch.Eventually(t, "connections to be accepted", func() bool { return accepted.Load() >= want })
		if got := accepted.Load(); got != want {
			t.Fatalf("want %d connections to be accepted after %d were closed, got %d", want, closed, got)
		}
		if err := silent[closed].Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// dialSilently opens connections that say nothing.
func dialSilently(t *testing.T, address string, count int) []net.Conn {
	t.Helper()
	var opened []net.Conn
	for range count {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		opened = append(opened, conn)
	}
	return opened
}

func TestAConnectionWithoutATokenIsClosed(t *testing.T) {
	c := newWire(t, start(t, newBackend(t), proxy.Options{}))
	const nobody = "GET /version HTTP/1.1\r\nHost: x\r\n\r\n"
	if codes := c.send(nobody+nobody, 2); fmt.Sprint(codes) != "[401]" {
		t.Errorf("want one answer and the end of the connection, got %v", codes)
	}
}

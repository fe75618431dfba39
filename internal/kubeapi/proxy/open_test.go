package proxy_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
)

// freePort returns a port that nobody has just now.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

// startOpen runs the open port of a proxy, and gives its address.
func startOpen(t *testing.T, b *backend, options proxy.Options) (base, log string) {
	t.Helper()
	var text strings.Builder
	options.Logger = funcr.New(func(_, args string) { text.WriteString(args + "\n") }, funcr.Options{})
	options.OpenPort = freePort(t)
	p, err := proxy.New(b.config(), options)
	if err != nil {
		t.Fatal(err)
	}
	server := p.OpenServer()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return "http://" + server.Listener.Addr().String(), text.String()
}

func ask(t *testing.T, method, url, body string, header http.Header, host string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header, request.Host = header, host
	request.Header.Set("X-Run", "yes")
	response, err := http.DefaultClient.Do(request)
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

func TestThereIsNoOpenPortUnlessAskedFor(t *testing.T) {
	if start(t, newBackend(t), proxy.Options{}).OpenServer() != nil {
		t.Error("there is one")
	}
}

func TestTheOpenPort(t *testing.T) {
	b, lease, n := newBackend(t), &toggle{}, newRecordingObserver()
	base, log := startOpen(t, b, proxy.Options{
		InjectOwnerRef: true, Fence: lease, WriteObservers: []access.WriteObserver{n}, IsConfined: func(access.Owner) bool { return true },
	})
	if !strings.Contains(log, "without a token") || !strings.Contains(log, strings.TrimPrefix(base, "http://")) {
		t.Errorf("want a warning with the address, got %q", log)
	}
	const path = "/api/v1/namespaces/any/configmaps"
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	for name, test := range map[string]struct {
		path   string
		header http.Header
		host   string
		want   int
	}{
		"a sidecar's request":               {path, header(), "", http.StatusOK},
		"by name":                           {path, header(), "localhost:8888", http.StatusOK},
		"a name that was rebound":           {path, header(), "evil.example:8888", http.StatusForbidden},
		"a name that only begins like ours": {path, header(), "127.0.0.1.evil.example", http.StatusForbidden},
		"a page from elsewhere":             {path, header("Origin", "https://evil.example"), "", http.StatusForbidden},
		"a page of nowhere":                 {path, header("Origin", "null"), "", http.StatusForbidden},
		"a page of another port":            {path, header("Origin", "http://localhost:3000"), "", http.StatusForbidden},
		"a page by another scheme":          {path, header("Origin", "https://localhost:8888"), "localhost:8888", http.StatusForbidden},
		"a page of this address":            {path, header("Origin", "http://localhost:8888", "Sec-Fetch-Site", "same-origin"), "localhost:8888", http.StatusOK},
		"what a page from elsewhere loads":  {path, header("Sec-Fetch-Site", "cross-site"), "", http.StatusForbidden},
		"what another port's page loads":    {path, header("Sec-Fetch-Site", "same-site"), "", http.StatusForbidden},
		"what a person types":               {path, header("Sec-Fetch-Site", "none"), "", http.StatusOK},
		"an encoded slash":                  {"/api/v1/namespaces/a%2fb/configmaps", header(), "", http.StatusBadRequest},
		"a parent directory":                {"/api/v1/../v1/configmaps", header(), "", http.StatusBadRequest},
		"a name that was . or ..":           {path + "/", header(), "", http.StatusBadRequest},
		"somebody else's token":             {path, header("Authorization", "Bearer x", "X-Remote-User", "root"), "", http.StatusOK},
		"fewer rights":                      {path, header("Impersonate-User", "weak"), "", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			before := b.arrivals()
			code, answer := ask(t, http.MethodPost, base+test.path, `{"metadata":{}}`, test.header, test.host)
			if code != test.want || (b.arrivals() > before) != (test.want == http.StatusOK) {
				t.Fatalf("want %d, got %d %s", test.want, code, answer)
			}
			if code != http.StatusOK {
				return
			}
			got := b.requests[before]
			if b.bodies[before] != `{"metadata":{}}` || got.Header.Get("Impersonate-User") != test.header.Get("Impersonate-User") || got.Header.Get("X-Remote-User") != "" || got.Header.Get("Authorization") != "Bearer the-managers-own" {
				t.Errorf("arrived %s with %v", b.bodies[before], got.Header)
			}
		})
	}
	lease.closed.Store(true)
	if code, _ := ask(t, http.MethodGet, base+path, "", header(), ""); code != http.StatusServiceUnavailable {
		t.Errorf("want nothing forwarded without the lease, got %d", code)
	}
	if len(n.calls) > 0 {
		t.Errorf("observers were called for requests without a run: %v", n.calls)
	}
}

func TestAnOccupiedOpenPortNamesTheFlag(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	port := listener.Addr().(*net.TCPAddr).Port
	if _, err := proxy.New(newBackend(t).config(), proxy.Options{OpenPort: port}); err == nil || !strings.Contains(err.Error(), "Options.ProxyOpenPort=") {
		t.Errorf("want an error that names the setting, got %v", err)
	}
}

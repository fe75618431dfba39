package proxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"golang.org/x/net/http/httpguts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// arrived is a request that reached an API server.
type arrived struct {
	*http.Request

	body string
}

// recorder stands for an API server; FuzzRequest asks it after each request.
type recorder struct {
	mu  sync.Mutex
	got []arrived
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	if request.Header.Get("X-Number") == "" {
		// The proxy itself asks: what is served, and what stands.
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound"}`)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, arrived{request, string(body)})
	_, _ = io.WriteString(w, "{}")
}

func (r *recorder) take() []arrived {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	return got
}

const (
	liveToken = iota
	noToken
	endedToken
	wrongToken
	secondToken
	tokenKinds
)

// FuzzRequest sends the proxy what no decent client would. Without the token of
// a live run nothing arrives at the API server; with it only what the proxy has
// understood, in the manager's name, for the owner of that token.
func FuzzRequest(f *testing.F) {
	server, elsewhere := &recorder{}, &recorder{}
	backend, other := httptest.NewServer(server), httptest.NewServer(elsewhere)
	f.Cleanup(backend.Close)
	f.Cleanup(other.Close)
	p, err := proxy.New(&rest.Config{Host: backend.URL, BearerToken: "the-managers-own"}, proxy.Options{InjectOwnerRef: true, Logger: logr.Discard()})
	if err != nil {
		f.Fatal(err)
	}
	second := owner()
	second.UID, second.Name = "uid-2", "other"
	tokens := [tokenKinds]string{liveToken: token(f, p, owner()), endedToken: ended(f, p), secondToken: token(f, p, second)}
	tokens[wrongToken] = tokens[liveToken] + "x"

	f.Add("GET", "/api/v1/namespaces/ns/pods?limit=5", "Accept: application/json\r\n", "", uint8(liveToken))
	f.Add("PUT", "/api/v1/namespaces/ns/configmaps/c", "Content-Type: application/json\r\n", `{"metadata":{"name":"c"}}`, uint8(liveToken))
	f.Add("PATCH", "/api/v1/namespaces/ns/configmaps/c?force=true", "Content-Type: application/apply-patch+yaml\r\n", "metadata: {name: c}", uint8(secondToken))
	f.Add("PATCH", "/api/v1/namespaces/ns/configmaps/c", "Content-Type: application/json-patch+json\r\n", `[{"op":"remove","path":"/metadata/ownerReferences"}]`, uint8(liveToken))
	f.Add("PATCH", "/api/v1/namespaces/ns/configmaps/c", "Content-Type: application/strategic-merge-patch+json\r\nConnection: Upgrade\r\nUpgrade: x\r\n", `{"$patch":"replace"}`, uint8(liveToken))
	f.Add("DELETE", "/api/v1/configmaps", "Content-Type: application/json\r\nX-Forwarded-For: 1.2.3.4\r\n", `{"dryRun":["All"]}`, uint8(liveToken))
	f.Add("DELETE", "/api/v1/namespaces/ns/configmaps/", "Impersonate-User: weak\r\n", "", uint8(liveToken))
	f.Add("DELETE", "/api/v1/namespaces/ns/", "Connection: Impersonate-User, Upgrade\r\nImpersonate-User: weak\r\n", "", uint8(liveToken))
	live := map[string]bool{"": false} // by number: a request whose body ends early arrives when it likes
	f.Fuzz(func(t *testing.T, method, target, headers, body string, which uint8) {
		target = strings.ReplaceAll(target, "ELSEWHERE", strings.TrimPrefix(other.URL, "http://"))
		headers = strings.ReplaceAll(headers, "TOKEN", tokens[liveToken])
		request := read(method, target, headers, body)
		if request == nil || strings.Contains(strings.ToLower(headers), "x-number") {
			return // The server would have refused it before the proxy, or it makes itself another.
		}
		number := strconv.Itoa(len(live))
		request.Header.Set("X-Number", number)
		if secret := tokens[which%tokenKinds]; secret != "" {
			request.Header.Add("Authorization", "Bearer "+secret)
		}
		ctx, cancel := context.WithTimeout(t.Context(), scratch.WaitTimeout)
		defer cancel()
		sent := request.Clone(ctx)
		live[number] = isLive(sent, tokens)
		answer := httptest.NewRecorder()
		p.ServeHTTP(answer, request.WithContext(ctx))
		got := server.take()
		if !live[number] && answer.Code != http.StatusUnauthorized {
			t.Errorf("without a live token the answer is %d", answer.Code)
		}
		if len(elsewhere.take()) > 0 {
			t.Errorf("%s %s went to another server", method, target)
		}
		for _, g := range got {
			arrived := g.Header.Get("X-Number")
			if !live[arrived] {
				t.Errorf("without a live token arrived %s %q", g.Method, g.RequestURI)
			}
			if arrived == number {
				checkArrived(t, sent, g)
				checkOwner(t, sent, g, body, which%tokenKinds == secondToken)
			}
		}
	})
}

// read makes a request as net/http's server reads it; nil where it would refuse.
func read(method, target, headers, body string) *http.Request {
	lower := strings.ToLower(headers)
	if !strings.Contains(lower, "content-length") && !strings.Contains(lower, "transfer-encoding") && body != "" {
		headers = fmt.Sprintf("Content-Length: %d\r\n%s", len(body), headers)
	}
	text := method + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + headers + "\r\n" + body
	request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		return nil
	}
	for name, values := range request.Header {
		if !httpguts.ValidHeaderFieldName(name) || slices.ContainsFunc(values, func(value string) bool { return !httpguts.ValidHeaderFieldValue(value) }) {
			return nil
		}
	}
	request.RemoteAddr = "127.0.0.1:1"
	return request
}

func isLive(r *http.Request, tokens [tokenKinds]string) bool {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return false
	}
	return slices.ContainsFunc([]string{tokens[liveToken], tokens[secondToken]}, func(token string) bool {
		return strings.HasSuffix(strings.TrimSpace(values[0]), token) && strings.EqualFold(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(values[0]), token)), "bearer")
	})
}

func token(f *testing.F, p *proxy.Proxy, o access.Owner) string {
	f.Helper()
	kubeconfig, _, err := p.Grant(o)
	if err != nil {
		f.Fatal(err)
	}
	return tokenOf(f, kubeconfig)
}

func ended(f *testing.F, p *proxy.Proxy) string {
	f.Helper()
	kubeconfig, revoke, err := p.Grant(owner())
	if err != nil {
		f.Fatal(err)
	}
	revoke()
	return tokenOf(f, kubeconfig)
}

func tokenOf(tb testing.TB, kubeconfig []byte) string {
	tb.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		tb.Fatal(err)
	}
	return config.BearerToken
}

// checkArrived compares what was sent with what arrived: the same request, in
// the manager's name alone.
func checkArrived(t *testing.T, sent *http.Request, got arrived) {
	t.Helper()
	if values := got.Header.Values("Authorization"); len(values) != 1 || values[0] != "Bearer the-managers-own" {
		t.Errorf("it arrived in the name of %q", values)
	}
	for _, header := range []http.Header{got.Header, got.Trailer} {
		for name := range header {
			if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-remote-") || lower == "forwarded" ||
				strings.HasPrefix(lower, "x-forwarded-") && header.Get(name) != "127.0.0.1" {
				t.Errorf("%s: %q arrived", name, header[name])
			}
		}
	}
	for name, values := range sent.Header {
		if strings.HasPrefix(strings.ToLower(name), "impersonate-") && !slices.Equal(got.Header[name], values) {
			t.Errorf("%s: %q arrived as %q", name, values, got.Header[name])
		}
	}
	if parts := strings.Split(strings.Trim(got.URL.Path, "/"), "/"); strings.HasSuffix(got.URL.Path, "/") && len(parts) > 3 && !slices.Contains(parts, "proxy") && (parts[0] == "api" || parts[0] == "apis") {
		t.Errorf("%s %q arrived with a slash at its end", got.Method, got.URL.Path)
	}
	if got.Method != sent.Method || got.URL.Path != sent.URL.Path || got.URL.RawQuery != sent.URL.RawQuery {
		t.Errorf("%s %q arrived as %s %q", sent.Method, sent.URL.RequestURI(), got.Method, got.RequestURI)
	}
	escaped := strings.ToLower(got.URL.EscapedPath())
	if clean := path.Clean(got.URL.Path); strings.Contains(escaped, "%2f") || strings.Contains(escaped, "%5c") || clean != strings.TrimSuffix(got.URL.Path, "/") && got.URL.Path != "/" {
		t.Errorf("the path %q may be read in two ways", got.RequestURI)
	}
	if sent.Header.Get("Upgrade") != "" {
		return // Hop by hop is what such a request is about.
	}
	hops := []string{"Proxy-Authorization", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate"}
	for _, value := range sent.Header.Values("Connection") {
		hops = append(hops, strings.Split(value, ",")...)
	}
	for _, hop := range hops {
		hop = http.CanonicalHeaderKey(strings.TrimSpace(hop))
		switch hop {
		case "Authorization", "Content-Length", "Accept-Encoding", "User-Agent", "Te", "X-Forwarded-For", "Content-Type":
			continue // Made anew for the next hop.
		}
		if got.Header.Get(hop) != "" {
			t.Errorf("%s is for the proxy only and arrived", hop)
		}
	}
}

// checkOwner makes sure that what is created belongs to the token's owner, and
// to no other run unless the client itself wrote so.
func checkOwner(t *testing.T, sent *http.Request, got arrived, body string, second bool) {
	t.Helper()
	own, foreign := "uid-1", "uid-2"
	if second {
		own, foreign = foreign, own
	}
	if strings.Contains(got.body, foreign) && !strings.Contains(body, "uid-") && !strings.Contains(body, `\u`) {
		t.Errorf("it belongs to another run's owner: %s", got.body)
	}
	// The API server says that there is no object yet, whichever it is asked for.
	const configMaps = "/api/v1/namespaces/ns/configmaps"
	applied, _, _ := strings.Cut(sent.Header.Get("Content-Type"), ";")
	makes := sent.Method == http.MethodPost && sent.URL.Path == configMaps || sent.URL.Path == configMaps+"/c" &&
		(sent.Method == http.MethodPut || sent.Method == http.MethodPatch && applied == "application/apply-patch+yaml")
	if !makes {
		return
	}
	var object map[string]any // A struct would take members in any case, which the API server does not.
	read := json.Unmarshal
	if strings.Contains(got.Header.Get("Content-Type"), "yaml") {
		read = func(body []byte, into any) error { return yaml.Unmarshal(body, into) }
	}
	if err := read([]byte(got.body), &object); err != nil {
		t.Fatalf("%q arrived: %v", got.body, err)
	}
	references, _, _ := unstructured.NestedSlice(object, "metadata", "ownerReferences")
	if !slices.ContainsFunc(references, func(r any) bool { m, ok := r.(map[string]any); return ok && m["uid"] == own }) {
		t.Errorf("what was created has no owner: %s", got.body)
	}
}

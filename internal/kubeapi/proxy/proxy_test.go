package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
)

// backend stands for the API server and keeps what reached it. What the proxy itself
// asks is kept apart: discovery, and looks at objects.
type backend struct {
	*httptest.Server

	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
	looks    []string
	// renewals are the proxy's own patches.
	renewals []string
	// live are the objects that looks find, by path.
	live map[string]string
	// lookCode is what looks are answered with, instead.
	lookCode int
	// lookMessage is the message of that answer.
	lookMessage string
	// answer answers what is forwarded; nil says that it was reached.
	answer http.HandlerFunc
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{lookMessage: "not today"}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		if resources, ok := discovery[r.URL.Path]; ok && r.Header.Get("X-Run") == "" {
			_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","resources":[`+resources+`]}`)
			return
		}
		b.mu.Lock()
		if r.Method == http.MethodGet && r.Header.Get("X-Run") == "" {
			b.looks = append(b.looks, r.URL.Path)
			b.mu.Unlock()
			b.lookAt(w, r)
			return
		}
		if r.Method == http.MethodPatch && r.Header.Get("X-Run") == "" { // The proxy itself renews a reference.
			b.renewals = append(b.renewals, string(body))
			b.live[r.URL.Path] = strings.ReplaceAll(b.live[r.URL.Path], "v1beta1", "v1")
			b.mu.Unlock()
			b.lookAt(w, r)
			return
		}
		b.requests, b.bodies = append(b.requests, r), append(b.bodies, string(body))
		answer := b.answer
		b.mu.Unlock()
		if answer == nil {
			_, _ = io.WriteString(w, `{"kind":"Reached"}`)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		answer(w, r)
	}))
	t.Cleanup(b.Close)
	return b
}

// discovery is what the backend serves, as far as it matters.
var discovery = map[string]string{
	"/api/v1": `{"name":"configmaps","namespaced":true,"kind":"ConfigMap","verbs":["get","create"]},` +
		`{"name":"bindings","namespaced":true,"kind":"Binding","verbs":["create"]}`,
	"/apis/apps/v1": `{"name":"deployments","namespaced":true,"kind":"Deployment","verbs":["get","create"]}`,
	"/apis/g.io/v1": `{"name":"ks","namespaced":false,"kind":"K","verbs":["get","create"]}`,
}

func (b *backend) lookAt(w http.ResponseWriter, r *http.Request) {
	object, ok := b.live[r.URL.Path]
	switch {
	case b.lookCode != 0:
		w.WriteHeader(b.lookCode)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"code":%d,"reason":%q}`, b.lookMessage, b.lookCode, map[int]string{403: "Forbidden", 405: "MethodNotAllowed"}[b.lookCode])
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound"}`)
	case strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata"):
		_, _ = io.WriteString(w, strings.Replace(object, `{`, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",`, 1))
	default:
		_, _ = io.WriteString(w, strings.Replace(object, `{`, `{"kind":"ConfigMap","apiVersion":"v1",`, 1))
	}
}

// arrivals tells how many requests were forwarded.
func (b *backend) arrivals() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.requests)
}

// since returns the requests that were forwarded after so many; more may be on the way.
func (b *backend) since(arrivals int) []*http.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests[arrivals:])
}

func (b *backend) config() *rest.Config {
	return &rest.Config{Host: b.URL, BearerToken: "the-managers-own"}
}

// start runs a proxy in front of the backend until the test ends.
func start(t *testing.T, b *backend, options proxy.Options) *proxy.Proxy {
	t.Helper()
	return startWith(t, b.config(), options)
}

func startWith(t *testing.T, config *rest.Config, options proxy.Options) *proxy.Proxy {
	t.Helper()
	options.Logger = logr.Discard()
	p, err := proxy.New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- p.Server().Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return p
}

func owner() access.Owner {
	return access.Owner{GVK: schema.GroupVersionKind{Group: "g.io", Version: "v1", Kind: "K"}, Namespace: "ns", Name: "cr", UID: "uid-1"}
}

// client is a run's client, made from its kubeconfig alone.
type client struct {
	t    *testing.T
	http *http.Client
	base string
}

func connect(t *testing.T, kubeconfig []byte) client {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return client{t, httpClient, config.Host}
}

func (c client) do(method, path, body string, header map[string]string) (int, string) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("X-Run", "yes")
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := c.http.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

func grant(t *testing.T, p *proxy.Proxy, o access.Owner) (client, func()) {
	t.Helper()
	kubeconfig, revoke, err := p.Grant(o)
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, kubeconfig), revoke
}

func TestOnlyALiveRunsTokenIsForwarded(t *testing.T) {
	b := newBackend(t)
	p := start(t, b, proxy.Options{InjectOwnerRef: true})
	alive, _ := grant(t, p, owner())
	ended, revoke := grant(t, p, owner())
	revoke()
	if code, answer := alive.do("GET", "/api/v1/pods", "", nil); code != http.StatusOK || !strings.Contains(answer, "Reached") {
		t.Fatalf("a live run's request: %d %s", code, answer)
	}
	forwarded := len(b.requests)
	for name, try := range map[string]func() (int, string){
		"the token of an ended run": func() (int, string) { return ended.do("GET", "/api/v1/pods", "", nil) },
		"a wrong token": func() (int, string) {
			return alive.do("GET", "/api", "", map[string]string{"Authorization": "Bearer x"})
		},
		"no bearer scheme": func() (int, string) {
			return alive.do("GET", "/api", "", map[string]string{"Authorization": "Basic eDp5"})
		},
		"an empty token": func() (int, string) {
			return alive.do("POST", "/api", "{}", map[string]string{"Authorization": "Bearer "})
		},
	} {
		t.Run(name, func(t *testing.T) {
			code, answer := try()
			if code != http.StatusUnauthorized || !strings.Contains(answer, "unknown or expired token of a run") {
				t.Errorf("want 401 with the reason, got %d %s", code, answer)
			}
		})
	}
	if len(b.requests) != forwarded {
		t.Errorf("%d requests without a live token were forwarded", len(b.requests)-forwarded)
	}
}

func TestTheCheckTellsWhetherTheProxyServes(t *testing.T) {
	p, err := proxy.New(newBackend(t).config(), proxy.Options{Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	check := func() error { return p.Check(httptest.NewRequest(http.MethodGet, "/healthz", nil)) }
	if check() == nil {
		t.Error("its port is taken, but nobody serves it yet")
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Server().Start(ctx) }()
	run, _ := grant(t, p, owner())
	run.do("GET", "/api/v1/pods", "", nil) // It serves once this has been answered.
	if err := check(); err != nil {
		t.Errorf("it serves, but %v", err)
	}
	end()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if check() == nil {
		t.Error("it has ended")
	}
}

func TestHasLiveToken(t *testing.T) {
	p := start(t, newBackend(t), proxy.Options{})
	token := func() (string, func()) {
		kubeconfig, revoke, err := p.Grant(owner())
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		return config.BearerToken, revoke
	}
	alive, _ := token()
	ended, revoke := token()
	revoke()
	for name, test := range map[string]struct {
		header string
		want   bool
	}{
		"that of a live run":         {"Bearer " + alive, true},
		"not that of one which was":  {"Bearer " + ended, false},
		"not any token":              {"Bearer x", false},
		"not a token by other means": {"Basic " + alive, false},
		"not nobody's":               {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/metrics", nil)
			r.Header.Set("Authorization", test.header)
			if got := p.HasLiveToken(r); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestCreatedObjectsGetTheirOwner(t *testing.T) {
	reference := `{"apiVersion":"g.io/v1","kind":"K","name":"cr","uid":"uid-1"}`
	clusterOwner := owner()
	clusterOwner.Namespace = ""
	for name, test := range map[string]struct {
		owner access.Owner
		path  string
		body  string
		want  string
	}{
		"a child in the CR's namespace gets a reference": {
			owner(), "/api/v1/namespaces/ns/configmaps", `{"metadata":{"name":"c"}}`,
			`{"metadata":{"name":"c","ownerReferences":[` + reference + `]}}`,
		},
		"a child elsewhere gets annotations, since a reference would delete it": {
			owner(), "/apis/apps/v1/namespaces/other/deployments", `{"metadata":{"name":"c","annotations":{"a":"b"}}}`,
			`{"metadata":{"name":"c","annotations":{"a":"b","operator-sdk/primary-resource":"ns/cr","operator-sdk/primary-resource-type":"K.g.io"}}}`,
		},
		"a question or a command in an object's shape is not stored": {
			owner(), "/api/v1/namespaces/ns/bindings", `{"metadata":{"name":"p"}}`, `{"metadata":{"name":"p"}}`,
		},
		"a cluster-scoped child of a namespaced CR gets annotations": {
			owner(), "/api/v1/namespaces", `{"metadata":{"name":"c"}}`,
			`{"metadata":{"name":"c","annotations":{"operator-sdk/primary-resource":"ns/cr","operator-sdk/primary-resource-type":"K.g.io"}}}`,
		},
		"a cluster-scoped CR may own everywhere": {
			clusterOwner, "/api/v1/namespaces/any/secrets", `{"metadata":{"generateName":"c-"}}`,
			`{"metadata":{"generateName":"c-","ownerReferences":[` + reference + `]}}`,
		},
		"a reference that the role set is not doubled": {
			owner(), "/api/v1/namespaces/ns/configmaps", `{"metadata":{"ownerReferences":[{"uid":"uid-1","name":"cr","kind":"K","apiVersion":"g.io/v1","controller":true}]}}`,
			`{"metadata":{"ownerReferences":[{"uid":"uid-1","name":"cr","kind":"K","apiVersion":"g.io/v1","controller":true}]}}`,
		},
		"another owner's reference stays": {
			owner(), "/api/v1/namespaces/ns/configmaps", `{"metadata":{"ownerReferences":[{"uid":"u2","name":"x","kind":"Y","apiVersion":"v1"}]}}`,
			`{"metadata":{"ownerReferences":[{"uid":"u2","name":"x","kind":"Y","apiVersion":"v1"},` + reference + `]}}`,
		},
		"numbers reach the API server as they were written": {
			owner(), "/api/v1/namespaces/ns/configmaps", `{"big":12345678901234567890,"float":1.50,"metadata":{}}`,
			`{"big":12345678901234567890,"float":1.50,"metadata":{"ownerReferences":[` + reference + `]}}`,
		},
		"a review stores nothing and has no owner": {
			owner(), "/apis/authorization.k8s.io/v1/subjectaccessreviews", `{"spec":{}}`, `{"spec":{}}`,
		},
		"a subresource is part of its object": {
			owner(), "/api/v1/namespaces/ns/pods/p/eviction", `{"metadata":{}}`, `{"metadata":{}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t)
			run, _ := grant(t, start(t, b, proxy.Options{InjectOwnerRef: true}), test.owner)
			if code, answer := run.do("POST", test.path, test.body, map[string]string{"Content-Type": "application/json"}); code != http.StatusOK {
				t.Fatalf("got %d %s", code, answer)
			}
			if diff := cmp.Diff(decode(t, test.want), decode(t, b.bodies[0])); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOtherRequestsPassAsTheyAre(t *testing.T) {
	for name, test := range map[string]struct{ method, path, contentType, body string }{
		"a merge patch":        {"PATCH", "/api/v1/namespaces/ns/configmaps/c", "application/merge-patch+json", `{"data": {"a":null}}`},
		"an unknown patch":     {"PATCH", "/api/v1/namespaces/ns/configmaps/c", "application/x", `?`},
		"a deletion":           {"DELETE", "/api/v1/namespaces/ns/configmaps/c", "application/json", `{"propagationPolicy":"Orphan"}`},
		"a query and its rest": {"GET", "/api/v1/pods?labelSelector=a%3Db&limit=5", "", ""},
		"no resource at all":   {"POST", "/version", "text/plain", "hello"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t)
			run, _ := grant(t, start(t, b, proxy.Options{InjectOwnerRef: true}), owner())
			if code, answer := run.do(test.method, test.path, test.body, map[string]string{"Content-Type": test.contentType}); code != http.StatusOK {
				t.Fatalf("got %d %s", code, answer)
			}
			if got := b.requests[0].URL.RequestURI(); got != test.path {
				t.Errorf("want %s, got %s", test.path, got)
			}
			if b.bodies[0] != test.body {
				t.Errorf("want body %q, got %q", test.body, b.bodies[0])
			}
		})
	}
}

func TestInjectionCanBeSwitchedOff(t *testing.T) {
	b := newBackend(t)
	run, _ := grant(t, start(t, b, proxy.Options{InjectOwnerRef: false}), owner())
	run.do("POST", "/api/v1/namespaces/ns/configmaps", `{"metadata":{}}`, nil)
	if b.bodies[0] != `{"metadata":{}}` {
		t.Errorf("the body was changed to %s", b.bodies[0])
	}
}

func TestBadRequestsAreRefusedBeforeTheAPIServer(t *testing.T) {
	b := newBackend(t)
	run, _ := grant(t, start(t, b, proxy.Options{InjectOwnerRef: true}), owner())
	const configMaps = "/api/v1/namespaces/ns/configmaps"
	for name, test := range map[string]struct {
		path, body, contentType string
		want                    int
	}{
		"an encoded slash":           {"/api/v1/namespaces/ns%2Fother/configmaps", "{}", "application/json", http.StatusBadRequest},
		"a parent directory":         {"/api/v1/namespaces/ns/../other/configmaps", "{}", "application/json", http.StatusBadRequest},
		"a doubled slash":            {"/api/v1//configmaps", "{}", "application/json", http.StatusBadRequest},
		"no JSON":                    {configMaps, "{", "application/json", http.StatusBadRequest},
		"no object":                  {configMaps, "[]", "application/json", http.StatusBadRequest},
		"more than the API takes":    {configMaps, strings.Repeat("x", 15<<20), "application/json", http.StatusRequestEntityTooLarge},
		"a format that has no owner": {configMaps, "k8s\x00", "application/vnd.kubernetes.protobuf", http.StatusUnsupportedMediaType},
	} {
		t.Run(name, func(t *testing.T) {
			code, answer := run.do("POST", test.path, test.body, map[string]string{"Content-Type": test.contentType})
			if code != test.want || !strings.Contains(answer, `"kind":"Status"`) {
				t.Errorf("want a Status with %d, got %d %s", test.want, code, answer)
			}
		})
	}
	if len(b.requests) > 0 {
		t.Errorf("%d bad requests were forwarded", len(b.requests))
	}
}

func TestAnUnreachableAPIServerIsSaid(t *testing.T) {
	b := newBackend(t)
	run, _ := grant(t, start(t, b, proxy.Options{}), owner())
	b.Close()
	if code, answer := run.do("GET", "/api", "", nil); code != http.StatusBadGateway || !strings.Contains(answer, "ensign API proxy") {
		t.Errorf("want 502 that names the proxy, got %d %s", code, answer)
	}
}

func TestAnOccupiedPortNamesTheFlag(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	port := listener.Addr().(*net.TCPAddr).Port
	if _, err := proxy.New(newBackend(t).config(), proxy.Options{Port: port}); err == nil || !strings.Contains(err.Error(), "Options.ProxyPort=") {
		t.Errorf("want an error that names the setting, got %v", err)
	}
}

func TestKubeconfigIsTheRunsOwn(t *testing.T) {
	p := start(t, newBackend(t), proxy.Options{})
	one, _, err := p.Grant(owner())
	if err != nil {
		t.Fatal(err)
	}
	two, _, err := p.Grant(owner())
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(one, two) {
		t.Error("two runs share a token")
	}
	config, err := clientcmd.Load(one)
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Contexts[config.CurrentContext].Namespace; got != "ns" {
		t.Errorf("want the CR's namespace as the default, got %q", got)
	}
}

func decode(t *testing.T, text string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("decode %s: %v", text, err)
	}
	return value
}

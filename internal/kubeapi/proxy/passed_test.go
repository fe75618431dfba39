package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
)

// passed is a sample for a row of the table in docs/reference-proxy.md.
type passed struct {
	method, path, header, value, body string
	// want is what arrives of the header; of the query or the body where there is no header.
	want string
}

const (
	put        = http.MethodPut
	get        = http.MethodGet
	background = `{"propagationPolicy":"Background","preconditions":{"uid":"u"},"unknown":1}`
)

// samples has requests by the first two cells of their rows: what is sent, and what the proxy
// does with it.
var samples = map[string][]passed{
	"`Authorization` | replaced":                                                  {{get, configMap, "Authorization", "", "", "Bearer the-managers-own"}, {put, configMap, "Authorization", "", "{}", "Bearer the-managers-own"}},
	"`Impersonate-*` | forwarded":                                                 {{get, configMap, "Impersonate-User", "weak", "", "weak"}, {put, configMap, "Impersonate-Group", "few", "{}", "few"}, {put, configMap, "Impersonate-Uid", "1", "{}", "1"}, {"DELETE", configMap, "Impersonate-Extra-Scopes", "some", "", "some"}},
	"`Connection: Impersonate-*` | refused":                                       {{put, configMap, "Connection", "close, impersonate-user", "{}", "400"}},
	"`X-Remote-*` | removed":                                                      {{get, configMap, "X-Remote-User", "root", "", ""}, {put, configMap, "X-Remote-Extra-A", "b", "{}", ""}},
	"`Forwarded`, `X-Forwarded-*`, `X-Real-Ip` | removed":                         {{get, configMap, "Forwarded", "for=1.2.3.4", "", ""}, {get, configMap, "X-Forwarded-Host", "a", "", ""}, {get, configMap, "X-Forwarded-For", "1.2.3.4", "", "127.0.0.1"}, {put, configMap, "X-Real-Ip", "1.2.3.4", "{}", ""}},
	"`Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.*` | removed": {{get, configMap, "Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.eA, v4.channel.k8s.io", "", "v4.channel.k8s.io"}},
	"`Accept` of a write | changed":                                               {{put, configMap, "Accept", "application/vnd.kubernetes.protobuf,application/json", "{}", "application/json"}, {put, configMap, "Accept", "application/vnd.kubernetes.protobuf", "{}", "application/vnd.kubernetes.protobuf"}},
	"`Accept-Encoding` of a write | changed":                                      {{put, configMap, "Accept-Encoding", "gzip", "{}", "identity"}},
	"`Content-Type` | changed":                                                    {{put, configMap, "Content-Type", "application/yaml", "metadata: {name: c}", "application/json"}, {"PATCH", configMap, "Content-Type", "application/apply-patch+yaml", "metadata: {name: c}", "application/apply-patch+yaml"}, {"DELETE", configMap, "Content-Type", "application/yaml", "{}", "application/yaml"}},
	"`Upgrade` of a write | removed":                                              {{put, configMap, "Upgrade", "SPDY/3.1", "{}", ""}},
	"`Keep-Alive`, `Proxy-*`, `TE`, what `Connection` names, trailers | removed":  {{put, configMap, "Keep-Alive", "timeout=5", "{}", ""}, {put, configMap, "Proxy-Authorization", "x", "{}", ""}, {get, configMap, "Te", "gzip", "", ""}, {"POST", "/version", "Trailer", "X-Late", "", ""}},
	"`Ensign-Condition-Types` | removed":                                          {{get, configMap, "Ensign-Condition-Types", "Ready", "", ""}, {put, configMap, "Ensign-Condition-Types", "Ready", "{}", ""}},
	"all other headers; of a read, also those above of a write | forwarded":       {{get, configMap, "Accept", "application/yaml", "", "application/yaml"}, {get, configMap, "Accept-Encoding", "gzip", "", "gzip"}, {get, "/api/v1/namespaces/ns/pods/p/exec", "Upgrade", "websocket", "", "websocket"}, {get, configMap, "User-Agent", "kubectl", "", "kubectl"}, {put, configMap, "If-Match", "5", "{}", "5"}, {put, configMap, "Audit-Id", "a", "{}", "a"}, {put, configMap, "Traceparent", "00-1-1-00", "{}", "00-1-1-00"}},
	"the query: `dryRun`, `fieldManager`, `fieldValidation`, `force`, `propagationPolicy`, `pretty`, … | forwarded": {
		{put, configMap + "?dryRun=All&fieldManager=m&fieldValidation=Strict&pretty=true&unknown=1", "", "", "{}", "dryRun=All&fieldManager=m&fieldValidation=Strict&pretty=true&unknown=1"},
		{"DELETE", configMap + "?propagationPolicy=Orphan&gracePeriodSeconds=0&orphanDependents=true", "", "", "", "propagationPolicy=Orphan&gracePeriodSeconds=0&orphanDependents=true"},
		{"PATCH", configMap + "?force=true&fieldManager=a%20b", "", "", "{}", "force=true&fieldManager=a%20b"},
	},
	"the body of a deletion | forwarded": {{"DELETE", configMap, "", "", background, background}},
	"the body of an object | changed":    {{put, configMap, "", "", `{"metadata": {"name":"c"}}`, `{"metadata":{"name":"c","ownerReferences":[{"apiVersion":"g.io/v1","kind":"K","name":"cr","uid":"uid-1"}]}}`}},
	"a path that ends with a slash | refused": {
		{get, "/api/v1/namespaces/ns/configmaps/", "", "", "", "400"}, {"DELETE", "/api/v1/namespaces/ns/configmaps/", "", "", "", "400"},
		{"DELETE", "/api/v1/namespaces/ns/", "", "", "", "400"}, {"PATCH", "/api/v1/namespaces/ns/", "", "", "{}", "400"}, {get, "/apis/g.io/v1/ks/", "", "", "", "400"},
		{"DELETE", "/apis/g.io/v1/", "", "", "", "400"}, {"POST", "/api/v1/", "", "", "{}", "400"}, {get, "/api/v1/namespaces/ns/services/s/", "", "", "", "400"},
	},
	"a slash at the end of `/api/`, `/version/`, … or behind `proxy/` | forwarded": {
		{get, "/api/", "", "", "", ""}, {get, "/apis/", "", "", "", ""}, {get, "/api/v1/", "X-Run", "yes", "", "yes"}, {get, "/apis/apps/v1/", "X-Run", "yes", "", "yes"}, {get, "/openapi/v3/", "", "", "", ""}, {get, "/version/", "", "", "", ""}, {get, "/healthz/", "", "", "", ""},
		{get, "/api/v1/namespaces/ns/services/s/proxy/", "", "", "", ""}, {"POST", "/api/v1/namespaces/ns/pods/p/proxy/a/", "", "", "x", "x"}, {get, "/api/v1/nodes/n/proxy/logs/", "", "", "", ""}, {get, "/", "", "", "", ""},
	},
	"a path in another than its shortest form, an encoded slash | refused": {{"DELETE", "/api/v1/namespaces/ns/configmaps/%2E%2E", "", "", "", "400"}, {"DELETE", "/api/v1/namespaces/ns/configmaps/a%2Fb", "", "", "", "400"}, {get, "/api/v1//pods", "", "", "", "400"}},
}

// rows returns the first two cells of the table's rows.
func rows(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/reference-proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## What reaches the API server")
	table, _, _ = strings.Cut(table, "\n## ")
	var found []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| (\w+)[^|]* \|`).FindAllStringSubmatch(table, -1) {
		found = append(found, row[1]+" | "+row[2])
	}
	return found
}

func TestTheTableOfWhatReachesTheAPIServer(t *testing.T) {
	all := rows(t)
	for row := range samples {
		if !slices.Contains(all, row) {
			t.Errorf("the table of docs/reference-proxy.md does not have %q", row)
		}
	}
	b := newBackend(t)
	p := start(t, b, proxy.Options{InjectOwnerRef: true, WriteObservers: []access.WriteObserver{newRecordingObserver()}})
	for _, row := range all {
		if len(samples[row]) == 0 && row != "What a client sends | What" {
			t.Errorf("no sample for %q", row)
		}
		for _, sample := range samples[row] {
			t.Run(row, func(t *testing.T) { checkPassed(t, p, b, sample) })
		}
	}
}

// checkPassed sends the sample and compares what arrives.
func checkPassed(t *testing.T, p *proxy.Proxy, b *backend, sample passed) {
	t.Helper()
	c := newWire(t, p)
	request := httptest.NewRequest(sample.method, sample.path, strings.NewReader(sample.body))
	request.RemoteAddr = "127.0.0.1:1"
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("X-Run", "yes")
	if sample.header != "" && sample.value != "" {
		request.Header.Set(sample.header, sample.value)
	}
	if sample.header == "Upgrade" {
		request.Header.Set("Connection", "Upgrade")
	}
	before := b.arrivals()
	answer := httptest.NewRecorder()
	p.ServeHTTP(answer, request)
	if sample.want == "400" {
		if answer.Code != http.StatusBadRequest || b.arrivals() > before || !strings.Contains(answer.Body.String(), "ensign API proxy: ") {
			t.Fatalf("%s %s: want it refused with the reason, got %d %s", sample.method, sample.path, answer.Code, answer.Body)
		}
		return
	}
	if b.arrivals() != before+1 {
		t.Fatalf("%s %s: want it forwarded, got %d %s", sample.method, sample.path, answer.Code, answer.Body)
	}
	got, body := b.requests[before], b.bodies[before]
	value := strings.Join(got.Header.Values(sample.header), ",")
	switch {
	case sample.header != "":
	case strings.Contains(sample.path, "?"):
		value = got.URL.RawQuery
	default:
		value = body
	}
	if value != sample.want {
		t.Errorf("%s %s %s: want %q to arrive, got %q", sample.method, sample.path, sample.header, sample.want, value)
	}
	if path, _, _ := strings.Cut(sample.path, "?"); got.URL.Path != path || got.Method != sample.method {
		t.Errorf("%s %s arrived as %s %s", sample.method, path, got.Method, got.URL.Path)
	}
}

func TestAManagerThatImpersonatesIsNotReplaced(t *testing.T) {
	b := newBackend(t)
	config := b.config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "the-operator"}
	run, _ := grant(t, startWith(t, config, proxy.Options{}), owner())
	for _, header := range []string{"Impersonate-User", "Impersonate-Group", "Impersonate-Extra-A"} {
		code, answer := run.do("GET", "/api/v1/pods", "", map[string]string{header: "root"})
		if code != http.StatusForbidden || !strings.Contains(answer, header) || b.arrivals() > 0 {
			t.Errorf("%s: want 403 with the reason, got %d %s", header, code, answer)
		}
	}
	if code, _ := run.do("GET", "/api/v1/pods", "", nil); code != http.StatusOK || b.requests[0].Header.Get("Impersonate-User") != "the-operator" {
		t.Errorf("want the manager's own identity, got %d, %v", code, b.requests[0].Header)
	}
}

// TestWhatAnImpersonatedWriteGets lets a run write as somebody else: the object gets its owner, by
// a look with the manager's rights, and confinement holds.
func TestWhatAnImpersonatedWriteGets(t *testing.T) {
	b := newBackend(t)
	b.live = map[string]string{configMap: `{"metadata":{"name":"c","ownerReferences":[{"apiVersion":"g.io/v1","kind":"K","name":"cr","uid":"uid-1"}]}}`}
	run, _ := grant(t, start(t, b, proxy.Options{InjectOwnerRef: true, IsConfined: func(access.Owner) bool { return true }}), owner())
	weak := map[string]string{"Impersonate-User": "weak", "Content-Type": "application/json"}
	if code, answer := run.do("PUT", configMap, `{"metadata":{"name":"c"}}`, weak); code != http.StatusOK {
		t.Fatalf("got %d %s", code, answer)
	}
	if b.requests[0].Header.Get("Impersonate-User") != "weak" || !strings.Contains(b.bodies[0], "uid-1") || len(b.looks) != 1 {
		t.Errorf("want the owner kept, in the name of weak, got %s with %v after %v", b.bodies[0], b.requests[0].Header, b.looks)
	}
	if code, _ := run.do("PUT", "/api/v1/namespaces/other/configmaps/c", `{}`, weak); code != http.StatusForbidden || b.arrivals() != 1 {
		t.Errorf("want it confined, got %d", code)
	}
}

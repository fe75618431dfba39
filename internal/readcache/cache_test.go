package readcache_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/ensign-operator/ensign/internal/access"
	"github.com/ensign-operator/ensign/internal/readcache"
)

const (
	configMaps = "/api/v1/namespaces/a/configmaps"
	widgets    = "/apis/demo.example.com/v1/namespaces/a/widgets"
	limit      = 1 << 20
)

// bench is a cache at work before an API server.
type bench struct {
	*readcache.Cache

	t       *testing.T
	server  *apiServer
	session *access.Session
	clock   *clocktesting.FakeClock

	mu      sync.Mutex
	results map[readcache.Result]int
	lines   []string
}

func newBench(t *testing.T, options readcache.Options) *bench {
	t.Helper()
	b := &bench{
		t: t, server: newAPIServer(t), clock: clocktesting.NewFakeClock(time.Now()), results: map[readcache.Result]int{},
		session: &access.Session{Owner: access.Owner{GVK: schema.GroupVersionKind{Group: "demo.example.com", Version: "v1", Kind: "Widget"}}},
	}
	if options.MaxBytes == 0 {
		options.MaxBytes = limit
	}
	options.Clock = b.clock
	options.Logger = b.logger()
	options.Observe = func(result readcache.Result) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.results[result]++
	}
	var err error
	if b.Cache, err = readcache.New(b.server.config(), options); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.lines = append(b.lines, args)
	}, funcr.Options{})
}

func (b *bench) logged(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Contains(strings.Join(b.lines, "\n"), text)
}

// start lets the cache work until the test ends.
func start(t *testing.T, options readcache.Options) *bench {
	t.Helper()
	b := newBench(t, options)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- b.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return b
}

// request asks the cache and gives the answer, and whether it was one.
func (b *bench) request(r *http.Request) (*httptest.ResponseRecorder, bool) {
	b.t.Helper()
	factory := apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := factory.NewRequestInfo(r)
	if err != nil {
		b.t.Fatal(err)
	}
	w := httptest.NewRecorder()
	ok := b.Answer(w, r, b.session, info)
	if !ok && (w.Body.Len() > 0 || len(w.Header()) > 0) {
		b.t.Errorf("something was written for %s without an answer", r.URL)
	}
	return w, ok
}

func (b *bench) get(path string) (body string, ok bool) {
	b.t.Helper()
	w, ok := b.request(httptest.NewRequestWithContext(b.t.Context(), http.MethodGet, path, nil))
	return w.Body.String(), ok
}

// await reads until the cache answers.
func (b *bench) await(path string) string {
	b.t.Helper()
	var body string
	eventually(b.t, "an answer to "+path, func() (ok bool) {
		body, ok = b.get(path)
		return ok
	})
	return body
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// never holds for the time that a hundred reads take.
func (b *bench) never(path string) {
	b.t.Helper()
	for range 100 {
		if body, ok := b.get(path); ok {
			b.t.Fatalf("%s was answered: %s", path, body)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestTheFirstReadIsLiveAndLaterOnesAreNot(t *testing.T) {
	b := start(t, readcache.Options{})
	b.server.put("configmaps", "a", "one", nil, "1")
	if _, ok := b.get(configMaps + "/one"); ok {
		t.Error("the first read was answered")
	}
	w, ok := httptest.NewRecorder(), false
	eventually(t, "an answer", func() bool {
		w, ok = b.request(httptest.NewRequestWithContext(t.Context(), http.MethodGet, configMaps+"/one", nil))
		return ok
	})
	want := http.Header{
		"Content-Type": {"application/json"}, "X-Cache": {"HIT"}, "Cache-Control": {"no-cache, private"},
		"Content-Length": {fmt.Sprint(w.Body.Len())},
	}
	if diff := cmp.Diff(want, w.Header()); diff != "" || w.Code != http.StatusOK {
		t.Errorf("code %d, header (-want +got):\n%s", w.Code, diff)
	}
	if b.Kinds() != 1 || b.results[readcache.Hit] != 1 || b.results[readcache.Miss] == 0 || b.results[readcache.Bypass] != 0 {
		t.Errorf("want one kind and one hit after misses, got %d, %v", b.Kinds(), b.results)
	}
}

func TestNothingIsAnsweredBeforeTheStart(t *testing.T) {
	b := newBench(t, readcache.Options{})
	b.server.put("configmaps", "a", "one", nil, "1")
	b.never(configMaps + "/one")
}

func TestAnswersAreThoseOfTheAPIServer(t *testing.T) {
	b := start(t, readcache.Options{})
	for _, kind := range []string{"configmaps", "widgets"} {
		b.server.put(kind, "b", "far", map[string]string{"app": "x"}, "<&>\u2028 \"quoted\" ü")
		b.server.put(kind, "a-b", "near", nil, "n")
		b.server.put(kind, "a", "two", map[string]string{"app": "x", "tier": "db"}, "2")
		b.server.put(kind, "a", "one", nil, "1")
	}
	b.server.put("nodes", "", "n1", nil, "")
	b.server.put("namespaces", "", "a", nil, "")
	for _, path := range []string{
		configMaps, widgets, "/api/v1/configmaps", "/apis/demo.example.com/v1/widgets", "/api/v1/nodes", "/api/v1/namespaces",
		"/api/v1/namespaces/empty/configmaps", "/apis/demo.example.com/v1/namespaces/empty/widgets",
	} {
		cached := b.await(path)
		response, err := http.Get(b.server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		var want, got map[string]any
		if err := json.NewDecoder(response.Body).Decode(&want); err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if err := json.Unmarshal([]byte(cached), &got); err != nil {
			t.Fatalf("%v in %s", err, cached)
		}
		// Revisions go on with other kinds; that there is no more goes without saying.
		delete(want["metadata"].(map[string]any), "continue")
		delete(want["metadata"].(map[string]any), "resourceVersion")
		delete(got["metadata"].(map[string]any), "resourceVersion")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-live +cached):\n%s", path, diff)
		}
	}
	want := `{"apiVersion":"demo.example.com/v1","kind":"Widget","data":"2","metadata":{"labels":{"app":"x","tier":"db"},"name":"two","namespace":"a","resourceVersion":"107","uid":"uid-107"}}` + "\n"
	if diff := cmp.Diff(want, b.await(widgets+"/two")); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
}

func TestAnswersCarryTheWarningsOfTheAPIServer(t *testing.T) {
	b := start(t, readcache.Options{})
	b.server.put("widgets", "a", "one", nil, "1")
	b.server.put("configmaps", "a", "one", nil, "1")
	const warning = `299 - "Widget v1 goes with the \"next\" version"`
	b.server.resources["widgets"].warning = warning
	for path, want := range map[string][]string{widgets: {warning}, widgets + "/one": {warning}, configMaps: nil} {
		b.await(path)
		for range 2 { // A later answer has no more of them.
			w, _ := b.request(httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
			if diff := cmp.Diff(want, w.Header().Values("Warning")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		}
	}
}

func TestListsAreSelectedByLabels(t *testing.T) {
	b := start(t, readcache.Options{})
	b.server.put("configmaps", "a", "none", nil, "")
	b.server.put("configmaps", "a", "x", map[string]string{"app": "x"}, "")
	b.server.put("configmaps", "a", "y", map[string]string{"app": "y", "size": "7"}, "")
	b.server.put("configmaps", "c", "x", map[string]string{"app": "x"}, "")
	for selector, want := range map[string][]string{
		"app=x":                {"a/x"},
		"app==x":               {"a/x"},
		"app!=x":               {"a/none", "a/y"},
		"app in (x,y)":         {"a/x", "a/y"},
		"app notin (x)":        {"a/none", "a/y"},
		"app":                  {"a/x", "a/y"},
		"!app":                 {"a/none"},
		"size>6":               {"a/y"},
		"size<7":               nil,
		"app in (x,y),size>=0": nil, // No selector: the API server says so.
		"app,size":             {"a/y"},
		"":                     {"a/none", "a/x", "a/y"},
	} {
		path := configMaps + "?labelSelector=" + strings.NewReplacer(" ", "%20", "<", "%3C", ">", "%3E", "=", "%3D").Replace(selector)
		b.await(configMaps)
		if strings.Contains(selector, ">=") {
			b.never(path)
			continue
		}
		if diff := cmp.Diff(want, names(b.await(path))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", selector, diff)
		}
	}
}

func TestWhatOnlyTheAPIServerCanAnswer(t *testing.T) {
	b := start(t, readcache.Options{})
	b.server.put("configmaps", "a", "one", nil, "1")
	b.server.put("secrets", "a", "one", nil, "1")
	b.server.put("namespaces", "", "a", nil, "1")
	b.await(configMaps + "/one")
	b.await("/api/v1/namespaces/a")
	b.await("/api/v1/nodes")
	json := "application/json"
	for name, test := range map[string]struct {
		method, path, accept string
		answered             bool
	}{
		"a plain GET":                             {"GET", configMaps + "/one", "", true},
		"JSON by name":                            {"GET", configMaps + "/one", json, true},
		"JSON before others":                      {"GET", configMaps + "/one", json + ", application/yaml", true},
		"anything":                                {"GET", configMaps + "/one", "*/*", true},
		"parameters that ask for nothing":         {"GET", configMaps + "/one?fieldSelector=&labelSelector=", json, true},
		"any version":                             {"GET", configMaps + "?resourceVersion=0", json, true},
		"a namespace, which is in none":           {"GET", "/api/v1/namespaces/a", json, true},
		"a Table":                                 {"GET", configMaps, json + ";as=Table;v=v1;g=meta.k8s.io," + json, false},
		"partial metadata":                        {"GET", configMaps, json + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", false},
		"Protobuf first":                          {"GET", configMaps, "application/vnd.kubernetes.protobuf," + json, false},
		"YAML":                                    {"GET", configMaps + "/one", "application/yaml", false},
		"a preference":                            {"GET", configMaps + "/one", json + ";q=0.1, application/yaml", false},
		"what can't be read":                      {"GET", configMaps + "/one", ";", false},
		"a page":                                  {"GET", configMaps + "?limit=1", json, false},
		"a next page":                             {"GET", configMaps + "?continue=abc", json, false},
		"a field selector":                        {"GET", configMaps + "?fieldSelector=metadata.name%3Done", json, false},
		"a version":                               {"GET", configMaps + "?resourceVersion=101", json, false},
		"how a version is to match":               {"GET", configMaps + "?resourceVersion=0&resourceVersionMatch=Exact", json, false},
		"a watch":                                 {"GET", configMaps + "?watch=true", json, false},
		"a watch without a value":                 {"GET", configMaps + "?watch", json, false},
		"a watch by path":                         {"GET", "/api/v1/watch/namespaces/a/configmaps", json, false},
		"a selector for one object":               {"GET", configMaps + "/one?labelSelector=a", json, false},
		"a parameter twice":                       {"GET", configMaps + "?labelSelector=a&labelSelector=b", json, false},
		"indentation":                             {"GET", configMaps + "/one?pretty=true", json, false},
		"indentation without a value":             {"GET", configMaps + "/one?pretty", json, false},
		"an unknown parameter":                    {"GET", configMaps + "/one?export=1", json, false},
		"a query that can't be read":              {"GET", configMaps + "/one?a=%zz", json, false},
		"a selector that can't be read":           {"GET", configMaps + "?labelSelector=%3D%3D", json, false},
		"what is not there":                       {"GET", configMaps + "/other", json, false},
		"a subresource":                           {"GET", configMaps + "/one/status", json, false},
		"something below a subresource":           {"GET", configMaps + "/one/proxy/x/y", json, false},
		"a path with a slash at its end":          {"GET", configMaps + "/one/", json, false},
		"a proxy by path":                         {"GET", "/api/v1/proxy/namespaces/a/configmaps/one", json, false},
		"a header":                                {"HEAD", configMaps + "/one", json, false},
		"a write":                                 {"PUT", configMaps + "/one", json, false},
		"a deletion of many":                      {"DELETE", configMaps, json, false},
		"a Secret":                                {"GET", "/api/v1/namespaces/a/secrets/one", json, false},
		"Secrets":                                 {"GET", "/api/v1/secrets", json, false},
		"what is served":                          {"GET", "/api/v1", json, false},
		"the version of the server":               {"GET", "/version", json, false},
		"a kind that is not served":               {"GET", "/api/v1/namespaces/a/unknowns/one", json, false},
		"a group that is not served":              {"GET", "/apis/nobody/v1/namespaces/a/unknowns/one", json, false},
		"what looks like a kind in its own place": {"GET", "/api/v1/namespaces/a/namespaces/a", json, false},
		"what has no namespace, in one":           {"GET", "/api/v1/namespaces/a/nodes", json, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), test.method, test.path, nil)
			if test.accept != "" {
				r.Header.Set("Accept", test.accept)
			}
			if _, ok := b.request(r); ok != test.answered {
				t.Errorf("answered: %v", ok)
			}
		})
	}
	if b.server.count("/api/v1/secrets") > 0 {
		t.Error("Secrets were listed")
	}
}

func TestNamespacesOfTheManager(t *testing.T) {
	b := start(t, readcache.Options{Namespaces: []string{"a", "b"}})
	b.server.put("configmaps", "a", "one", nil, "1")
	b.server.put("configmaps", "c", "one", nil, "1")
	b.server.put("nodes", "", "n1", nil, "")
	if diff := cmp.Diff([]string{"a/one"}, names(b.await(configMaps))); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	b.await("/api/v1/namespaces/b/configmaps")
	b.await("/api/v1/nodes/n1")
	b.never("/api/v1/namespaces/c/configmaps")
	b.never("/api/v1/configmaps")
	for _, path := range []string{"/api/v1/configmaps", "/api/v1/namespaces/c/configmaps"} {
		if b.server.count(path) > 0 {
			t.Errorf("%s was listed", path)
		}
	}
	if b.Kinds() != 3 {
		t.Errorf("want an informer for each namespace and one for nodes, got %d", b.Kinds())
	}
}

func TestABlacklistedKindIsReadLiveByItsWatchAlone(t *testing.T) {
	b := start(t, readcache.Options{Blacklisted: func(watch schema.GroupVersionKind, kind schema.GroupKind) bool {
		return watch.Kind == "Widget" && kind == schema.GroupKind{Kind: "ConfigMap"}
	}})
	b.server.put("configmaps", "a", "one", nil, "1")
	b.never(configMaps + "/one")
	if b.Kinds() > 0 {
		t.Error("a kind is kept for nobody")
	}
	if !b.logged("Skipping cache lookup") {
		t.Error("the log does not say that the cache is not asked")
	}
	blacklisting := b.session
	b.session = &access.Session{Owner: access.Owner{GVK: schema.GroupVersionKind{Kind: "Other"}}}
	b.await(configMaps + "/one")
	b.session = blacklisting
	b.never(configMaps + "/one")
}

func TestKindsThatCannotBeKept(t *testing.T) {
	for name, test := range map[string]struct {
		arrange func(*apiServer)
		amend   func(*apiServer)
		pause   time.Duration
		reason  string
	}{
		"the service account may not list them": {
			func(s *apiServer) { s.refused["configmaps"] = http.StatusForbidden },
			func(s *apiServer) { delete(s.refused, "configmaps") },
			5 * time.Minute, "Forbidden",
		},
		"they can't be watched": {
			func(s *apiServer) { s.resources["configmaps"].Verbs = []string{"get", "list"} },
			func(s *apiServer) { s.resources["configmaps"].Verbs = []string{"list", "watch"} },
			10 * time.Minute, "can't be listed and watched",
		},
		"the API server is out of order": {
			func(s *apiServer) { s.refused["configmaps"] = http.StatusInternalServerError },
			func(s *apiServer) { delete(s.refused, "configmaps") },
			30 * time.Second, "list some of it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, readcache.Options{})
			b.server.put("configmaps", "a", "one", nil, "1")
			b.server.put("widgets", "a", "one", nil, "1")
			b.server.set(func() { test.arrange(b.server) })
			b.get(configMaps + "/one")
			eventually(t, "the reason in the log", func() bool { return b.logged(test.reason) })
			b.await(widgets + "/one") // Another kind is not affected.
			b.server.set(func() { test.amend(b.server) })
			lists := b.server.count("/api/v1/configmaps")
			b.clock.Step(test.pause - time.Second)
			b.never(configMaps + "/one")
			if b.server.count("/api/v1/configmaps") != lists {
				t.Error("the kind was looked at again too soon")
			}
			b.clock.Step(time.Second)
			b.await(configMaps + "/one")
		})
	}
}

func TestAKindThatIsForbiddenLaterIsGivenUp(t *testing.T) {
	b := start(t, readcache.Options{})
	b.server.put("configmaps", "a", "one", nil, "1")
	b.await(configMaps + "/one")
	b.server.set(func() { b.server.refused["configmaps"] = http.StatusForbidden })
	eventually(t, "the end of the informer", func() bool {
		b.get(configMaps + "/one")
		return b.Kinds() == 0
	})
	b.never(configMaps + "/one")
	b.server.set(func() { delete(b.server.refused, "configmaps") })
	b.clock.Step(5 * time.Minute)
	b.await(configMaps + "/one")
}

func TestNothingIsAnsweredWhileTheStoreGrowsOld(t *testing.T) {
	b := start(t, readcache.Options{})
	b.server.put("configmaps", "a", "one", nil, "1")
	b.await(configMaps + "/one")
	b.server.set(func() { b.server.refused["configmaps"] = http.StatusInternalServerError })
	eventually(t, "live reads", func() bool {
		_, ok := b.get(configMaps + "/one")
		return !ok
	})
	b.never(configMaps + "/one")
	b.server.set(func() { delete(b.server.refused, "configmaps") })
	b.await(configMaps + "/one")
}

func TestAKindThatNobodyReadsIsForgotten(t *testing.T) {
	b := start(t, readcache.Options{})
	b.server.put("configmaps", "a", "one", nil, "1")
	b.server.put("widgets", "a", "one", nil, "1")
	b.await(configMaps + "/one")
	b.await(widgets + "/one")
	for range 9 {
		b.clock.Step(time.Minute)
		b.get(widgets + "/one")
	}
	if b.Kinds() != 2 {
		t.Errorf("want two kinds for ten minutes, got %d", b.Kinds())
	}
	eventually(t, "the end of one", func() bool {
		b.get(widgets + "/one")
		b.clock.Step(time.Minute)
		return b.Kinds() == 1
	})
	if _, ok := b.get(widgets + "/one"); !ok {
		t.Error("the kind that is read is gone")
	}
	if b.Bytes() <= 0 || b.Bytes() > 1000 {
		t.Errorf("want the bytes of one small object, got %d", b.Bytes())
	}
	b.await(configMaps + "/one")
}

func TestTheLeastRecentlyReadKindsGoFirst(t *testing.T) {
	b := start(t, readcache.Options{MaxBytes: 100 << 10})
	big := strings.Repeat("x", 40<<10)
	b.server.put("configmaps", "a", "big", nil, big)
	b.server.put("nodes", "", "big", nil, big)
	b.server.put("widgets", "a", "big", nil, big)
	b.await("/api/v1/nodes/big")
	b.clock.Step(time.Second)
	b.await(configMaps + "/big")
	b.clock.Step(time.Second)
	b.await("/api/v1/nodes/big")
	b.clock.Step(time.Second)
	b.await(widgets + "/big")
	eventually(t, "room", func() bool { return b.Kinds() == 2 })
	b.never(configMaps + "/big")
	b.await("/api/v1/nodes/big")
	b.await(widgets + "/big")
	if b.Bytes() > 100<<10 || b.Bytes() < 80<<10 {
		t.Errorf("want two big objects counted, got %d bytes", b.Bytes())
	}
	b.clock.Step(9 * time.Minute)
	b.await(widgets + "/big")
	b.never(configMaps + "/big")
	b.clock.Step(time.Minute)
	b.await(configMaps + "/big")
	if !b.logged("--proxy-cache-max-bytes") {
		t.Error("the log does not name the flag")
	}
}

func TestAKindThatIsTooLargeIsNotEvenListed(t *testing.T) {
	b := start(t, readcache.Options{MaxBytes: 100 << 10})
	b.server.put("widgets", "a", "one", nil, "1")
	b.await(widgets + "/one")
	for i := range 40 {
		b.server.put("configmaps", "a", fmt.Sprint("big-", i), nil, strings.Repeat("x", 4<<10))
	}
	b.get(configMaps)
	eventually(t, "the reason in the log", func() bool { return b.logged("its objects take about") })
	b.never(configMaps)
	if n := b.server.count("/api/v1/configmaps"); n != 1 {
		t.Errorf("want one look at the kind, got %d", n)
	}
	if _, ok := b.get(widgets + "/one"); !ok {
		t.Error("another kind had to go")
	}
}

func TestAKindThatGrowsTooLargeIsGivenUp(t *testing.T) {
	b := start(t, readcache.Options{MaxBytes: 100 << 10})
	b.server.put("configmaps", "a", "one", nil, "1")
	b.await(configMaps + "/one")
	for i := range 40 {
		b.server.put("configmaps", "a", fmt.Sprint("big-", i), nil, strings.Repeat("x", 4<<10))
	}
	eventually(t, "the end of the informer", func() bool { return b.Kinds() == 0 })
	b.never(configMaps + "/one")
}

func TestAListThatIsLargerThanItLookedIsGivenUp(t *testing.T) {
	b := start(t, readcache.Options{MaxBytes: 100 << 10})
	for i := range 20 {
		b.server.put("configmaps", "a", fmt.Sprintf("a-small-%02d", i), nil, "1")
	}
	for i := range 60 {
		b.server.put("configmaps", "a", fmt.Sprint("b-big-", i), nil, strings.Repeat("x", 20<<10))
	}
	b.get(configMaps)
	eventually(t, "the reason in the log", func() bool { return b.logged("--proxy-cache-max-bytes") })
	b.never(configMaps)
	if b.Bytes() != 0 {
		t.Errorf("want nothing kept, got %d bytes", b.Bytes())
	}
}

func TestChangesAreCountedAndShown(t *testing.T) {
	b := start(t, readcache.Options{})
	b.server.put("configmaps", "a", "one", map[string]string{"app": "x"}, "1")
	b.await(configMaps + "/one")
	small := b.Bytes()
	b.server.put("configmaps", "a", "one", nil, strings.Repeat("x", 10000))
	eventually(t, "the change", func() bool {
		body, ok := b.get(configMaps + "/one")
		return ok && len(body) > 10000 && b.Bytes() > small+9000
	})
	b.server.remove("a/one")
	eventually(t, "the deletion", func() bool {
		body, ok := b.get(configMaps)
		return ok && strings.Contains(body, `"items":[]`) && b.Bytes() == 0
	})
}

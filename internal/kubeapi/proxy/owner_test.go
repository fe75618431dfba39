package proxy_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
)

const (
	configMap = "/api/v1/namespaces/ns/configmaps/c"
	reference = `{"apiVersion":"g.io/v1","kind":"K","name":"cr","uid":"uid-1"}`
)

func TestWritesToWhatIsThereCarryTheOwner(t *testing.T) {
	const marked = `{"metadata":{"name":"c","namespace":"ns","ownerReferences":[{"apiVersion":"g.io/v1beta1","kind":"K","name":"cr","uid":"uid-1"}]}}`
	const kept = reference // in the version that the manager watches
	for name, test := range map[string]struct {
		method, contentType, body string
		live                      string
		want                      string
		wantLooks                 int
	}{
		"a PUT of a child":          {"PUT", "application/json", `{"metadata":{"name":"c"}}`, marked, `{"metadata":{"name":"c","ownerReferences":[` + kept + `]}}`, 1},
		"a PUT that makes it":       {"PUT", "application/json", `{"metadata":{"name":"c"}}`, "", `{"metadata":{"name":"c","ownerReferences":[` + reference + `]}}`, 1},
		"a PUT of a foreign object": {"PUT", "application/json", `{"metadata":{"name":"c"}}`, `{"metadata":{}}`, `{"metadata":{"name":"c"}}`, 1},
		"an apply of a child":       {"PATCH", "application/apply-patch+yaml", "metadata: {name: c}", marked, `{"metadata":{"name":"c","ownerReferences":[` + kept + `]}}`, 1},
		"an apply that makes it":    {"PATCH", "application/apply-patch+yaml", "metadata: {name: c}", "", `{"metadata":{"name":"c","ownerReferences":[` + reference + `]}}`, 1},
		"a patch that drops it":     {"PATCH", "application/merge-patch+json", `{"metadata":{"ownerReferences":null}}`, marked, `{"metadata":{"ownerReferences":[` + kept + `]}}`, 1},
		"a JSON patch that drops it": {
			"PATCH", "application/json-patch+json", `[{"op":"remove","path":"/metadata/ownerReferences"}]`, marked,
			`[{"op":"remove","path":"/metadata/ownerReferences"},{"op":"add","path":"/metadata/ownerReferences","value":[` + kept + `]}]`, 1,
		},
		"a patch of other things":          {"PATCH", "application/merge-patch+json", `{"data":{}}`, marked, `{"data":{},"metadata":{"ownerReferences":[` + kept + `]}}`, 1},
		"a patch of what is up to date":    {"PATCH", "application/merge-patch+json", `{"data":{}}`, `{"metadata":{"ownerReferences":[` + kept + `]}}`, `{"data":{}}`, 1},
		"a patch of what cannot be linked": {"PATCH", "application/merge-patch+json", `{"data":{}}`, "", `{"data":{}}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t)
			if b.live = map[string]string{}; test.live != "" {
				b.live[configMap] = test.live
			}
			run, _ := grant(t, start(t, b, proxy.Options{InjectOwnerRef: true}), owner())
			if code, answer := run.do(test.method, configMap+"?fieldManager=m&force=true", test.body, map[string]string{"Content-Type": test.contentType}); code != http.StatusOK {
				t.Fatalf("got %d %s", code, answer)
			}
			if got := b.bodies[0]; strings.HasPrefix(got, "{") || strings.HasPrefix(got, "[") {
				if diff := cmp.Diff(decode(t, test.want), decode(t, got)); diff != "" {
					t.Errorf("body (-want +got):\n%s", diff)
				}
			} else {
				t.Errorf("want %s, got %s", test.want, got)
			}
			if len(b.looks) != test.wantLooks {
				t.Errorf("want %d looks, got %v", test.wantLooks, b.looks)
			}
			// The body of an apply must not differ from what another field manager has written.
			if renewals := strings.Contains(test.contentType, "apply") && test.live != ""; (len(b.renewals) == 1) != renewals {
				t.Errorf("want a patch of the proxy before it: %v, got %v", renewals, b.renewals)
			}
			if got := b.requests[0]; got.URL.RawQuery != "fieldManager=m&force=true" {
				t.Errorf("the query became %q", got.URL.RawQuery)
			}
		})
	}
}

func TestNamespacesAreClusterScoped(t *testing.T) {
	b := newBackend(t)
	run, _ := grant(t, start(t, b, proxy.Options{InjectOwnerRef: true}), owner())
	// RequestInfo says that this one is in the namespace ns, where the CR is.
	if code, answer := run.do("PATCH", "/api/v1/namespaces/ns", `{"metadata":{"name":"ns"}}`, map[string]string{"Content-Type": "application/apply-patch+yaml"}); code != http.StatusOK {
		t.Fatalf("got %d %s", code, answer)
	}
	if strings.Contains(b.bodies[0], "ownerReferences") || !strings.Contains(b.bodies[0], `"operator-sdk/primary-resource":"ns/cr"`) {
		t.Errorf("want annotations, got %s", b.bodies[0])
	}
	if diff := cmp.Diff([]string{"/api/v1/namespaces/ns"}, b.looks); diff != "" {
		t.Errorf("looks (-want +got):\n%s", diff)
	}
}

// TestAStatusIsWrittenWithAllOfItsObject: Kubernetes' own kinds take metadata from it.
func TestAStatusIsWrittenWithAllOfItsObject(t *testing.T) {
	for name, test := range map[string]struct{ method, contentType, body, want string }{
		"a PUT":                 {"PUT", "application/json", `{"metadata":{"name":"c"}}`, `{"metadata":{"name":"c","ownerReferences":[` + reference + `]}}`},
		"a patch that drops it": {"PATCH", "application/merge-patch+json", `{"metadata":{"ownerReferences":null}}`, `{"metadata":{}}`},
		"a patch of the status": {"PATCH", "application/merge-patch+json", `{"status":{}}`, `{"status":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t)
			b.live = map[string]string{configMap: `{"metadata":{"name":"c","ownerReferences":[` + reference + `]}}`}
			run, _ := grant(t, start(t, b, proxy.Options{InjectOwnerRef: true}), owner())
			if code, answer := run.do(test.method, configMap+"/status", test.body, map[string]string{"Content-Type": test.contentType}); code != http.StatusOK {
				t.Fatalf("got %d %s", code, answer)
			}
			if diff := cmp.Diff(decode(t, test.want), decode(t, b.bodies[0])); diff != "" || b.requests[0].URL.Path != configMap+"/status" {
				t.Errorf("%s (-want +got):\n%s", b.requests[0].URL.Path, diff)
			}
		})
	}
}

func TestSubresourcesAreLeftAlone(t *testing.T) {
	b := newBackend(t)
	run, _ := grant(t, start(t, b, proxy.Options{InjectOwnerRef: true}), owner())
	for path, contentType := range map[string]string{
		"/api/v1/namespaces/ns/pods/p/binding":              "application/apply-patch+yaml",
		"/apis/apps/v1/namespaces/ns/deployments/d/scale":   "application/merge-patch+json",
		"/api/v1/namespaces/ns/finalize":                    "application/apply-patch+yaml",
		"/api/v1/namespaces/ns/serviceaccounts/a/token":     "application/json",
		"/apis/authorization.k8s.io/v1/subjectaccessreview": "application/json",
	} {
		const body = "metadata: {ownerReferences: null}"
		if code, answer := run.do("PATCH", path, body, map[string]string{"Content-Type": contentType}); code != http.StatusOK {
			t.Errorf("%s: %d %s", path, code, answer)
		}
		if got := b.bodies[len(b.bodies)-1]; got != body {
			t.Errorf("%s: the body became %s", path, got)
		}
	}
	if len(b.looks) > 0 {
		t.Errorf("there were looks at %v", b.looks)
	}
}

func TestAFailedLookUpRefusesTheWrite(t *testing.T) {
	for name, test := range map[string]struct {
		code, want int
		reason     string
	}{
		"forbidden":  {http.StatusForbidden, http.StatusForbidden, "Forbidden"},
		"an error":   {http.StatusInternalServerError, http.StatusInternalServerError, "InternalError"},
		"no service": {http.StatusServiceUnavailable, http.StatusServiceUnavailable, "ServiceUnavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t)
			b.lookCode = test.code
			run, _ := grant(t, start(t, b, proxy.Options{InjectOwnerRef: true}), owner())
			code, answer := run.do("PUT", configMap, `{"metadata":{}}`, nil)
			if code != test.want || !strings.Contains(answer, test.reason) || !strings.Contains(answer, "before it is written") {
				t.Errorf("want %d %s with the reason, got %d %s", test.want, test.reason, code, answer)
			}
			if len(b.requests) > 0 {
				t.Error("it was written")
			}
		})
	}
}

func TestAPatchOfOtherThingsNeedsNoLookUp(t *testing.T) {
	b := newBackend(t)
	b.lookCode = http.StatusForbidden
	run, _ := grant(t, start(t, b, proxy.Options{InjectOwnerRef: true}), owner())
	patch := map[string]string{"Content-Type": "application/merge-patch+json"}
	if code, answer := run.do("PATCH", configMap, `{"data":{}}`, patch); code != http.StatusOK || b.bodies[0] != `{"data":{}}` {
		t.Errorf("want it to pass as it is, got %d %s", code, answer)
	}
	run.do("PATCH", configMap+"/status", `{"status":{}}`, patch)
	if len(b.looks) != 1 {
		t.Errorf("want no look for a status, got %v", b.looks)
	}
}

func TestOnlyAWriteOfItsOwnRightsIsPrecededByAPatch(t *testing.T) {
	b := newBackend(t)
	b.live = map[string]string{configMap: `{"metadata":{"ownerReferences":[` + strings.Replace(reference, "v1", "v1beta1", 1) + `]}}`}
	run, _ := grant(t, start(t, b, proxy.Options{InjectOwnerRef: true}), owner())
	run.do("PATCH", configMap+"?dryRun=All&fieldManager=m", "metadata: {name: c}", map[string]string{"Content-Type": "application/apply-patch+yaml"})
	// The API server has not judged yet whether another account may write.
	run.do("PATCH", configMap+"?fieldManager=m", "metadata: {name: c}", map[string]string{"Content-Type": "application/apply-patch+yaml", "Impersonate-User": "weak"})
	if len(b.renewals) > 0 || len(b.requests) != 2 {
		t.Errorf("got %v", b.renewals)
	}
}

func TestWhatCannotBeReadHasNoOwner(t *testing.T) {
	b := newBackend(t)
	b.lookCode = http.StatusMethodNotAllowed
	run, _ := grant(t, start(t, b, proxy.Options{InjectOwnerRef: true}), owner())
	if code, answer := run.do("PUT", configMap, `{"metadata":{}}`, nil); code != http.StatusOK || b.bodies[0] != `{"metadata":{}}` {
		t.Errorf("want it to pass as it is, got %d %s", code, answer)
	}
}

func TestDryRunsShowTheOwnerToo(t *testing.T) {
	b := newBackend(t)
	run, _ := grant(t, start(t, b, proxy.Options{InjectOwnerRef: true}), owner())
	run.do("POST", "/api/v1/namespaces/ns/configmaps?dryRun=All", `{"metadata":{}}`, nil)
	if !strings.Contains(b.bodies[0], "uid-1") {
		t.Errorf("a dry run has no owner: %s", b.bodies[0])
	}
}

func TestDiscoveryIsAskedOnce(t *testing.T) {
	b := newBackend(t)
	asked := 0
	handler := b.Config.Handler
	b.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1" {
			asked++
		}
		handler.ServeHTTP(w, r)
	})
	run, _ := grant(t, start(t, b, proxy.Options{InjectOwnerRef: true}), owner())
	for range 3 {
		run.do("POST", "/api/v1/namespaces/ns/configmaps", `{"metadata":{}}`, nil)
	}
	if asked != 1 || len(b.looks) > 0 {
		t.Errorf("want one question and no looks, got %d and %v", asked, b.looks)
	}
}

// The API server refuses a key that stands twice if fieldValidation is Strict, as it is for kubectl. The proxy,
// which writes the object anew, must not hide it.
func TestStrictValidationSeesKeysThatStandTwice(t *testing.T) {
	for why, test := range map[string]struct{ method, contentType, query, body, want string }{
		"JSON":                   {"POST", "application/json", "Strict", `{"data":{"a":"1","a":"2"}}`, `duplicate field \"data.a\"`},
		"JSON of a PUT":          {"PUT", "application/json", "Strict", `{"metadata":{"name":"c","name":"d"}}`, `duplicate field \"metadata.name\"`},
		"in a list":              {"POST", "", "Strict", `{"items":[{"a":1,"a":1}]}`, `duplicate field \"items[0].a\"`},
		"YAML":                   {"POST", "application/yaml", "Strict", "data: {a: b}\ndata: {}\n", "already set in map"},
		"JSON in YAML":           {"POST", "application/yaml", "Strict", `{"a":1,"a":2}`, "duplicate field"},
		"an apply":               {"PATCH", "application/apply-patch+yaml", "Strict", "data:\n  a: b\n  a: c\n", "already set in map"},
		"a merge patch":          {"PATCH", "application/merge-patch+json", "Strict", `{"data":{"a":"1","a":"2"}}`, "duplicate field"},
		"a strategic patch":      {"PATCH", "application/strategic-merge-patch+json", "Strict", `{"data":{"a":"1","a":"2"}}`, "duplicate field"},
		"a JSON patch":           {"PATCH", "application/json-patch+json", "Strict", `[{"op":"add","path":"/data","value":{"a":"1","a":"2"}}]`, "duplicate field"},
		"no strictness":          {"POST", "application/json", "Ignore", `{"data":{"a":"1","a":"2"}}`, ""},
		"the default":            {"POST", "application/json", "", `{"data":{"a":"1","a":"2"}}`, ""},
		"each key once":          {"POST", "application/json", "Strict", `{"data":{"a":"1","A":"2","b":{"a":"1"}}}`, ""},
		"each key once, in YAML": {"POST", "application/yaml", "Strict", "data: {a: b}\nmetadata: {a: b}\n", ""},
	} {
		t.Run(why, func(t *testing.T) {
			b := newBackend(t)
			b.live = map[string]string{configMap: `{"metadata":{"name":"c"}}`}
			run, _ := grant(t, start(t, b, proxy.Options{InjectOwnerRef: true}), owner())
			path := configMap
			if test.method == "POST" {
				path = strings.TrimSuffix(configMap, "/c")
			}
			code, answer := run.do(test.method, path+"?fieldManager=m&fieldValidation="+test.query, test.body, map[string]string{"Content-Type": test.contentType})
			if test.want == "" && code != http.StatusOK {
				t.Errorf("got %d %s", code, answer)
			}
			if test.want != "" && (code != http.StatusBadRequest || !strings.Contains(answer, test.want) || len(b.bodies) > 0) {
				t.Errorf("got %d %s, and %d writes arrived", code, answer, len(b.bodies))
			}
		})
	}
}

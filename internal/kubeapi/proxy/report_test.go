package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// recordingObserver is a WriteObserver that keeps its calls.
type recordingObserver struct {
	mu      sync.Mutex
	writes  []access.Write
	answers []access.Response
	calls   []string // in order
	changed chan struct{}
}

func newRecordingObserver() *recordingObserver {
	return &recordingObserver{changed: make(chan struct{}, 100)}
}

func (n *recordingObserver) BeforeWrite(_ *access.Session, write access.Write) func(access.Response) {
	n.note(func() { n.writes = append(n.writes, write); n.calls = append(n.calls, "writing") })
	return func(answer access.Response) {
		n.note(func() { n.answers = append(n.answers, answer); n.calls = append(n.calls, "answered") })
	}
}

func (n *recordingObserver) SessionEnded(*access.Session) {
	n.note(func() { n.calls = append(n.calls, "ended") })
}

func (n *recordingObserver) note(what func()) {
	n.mu.Lock()
	what()
	n.mu.Unlock()
	n.changed <- struct{}{}
}

func (n *recordingObserver) wait(t *testing.T, calls int) []string {
	t.Helper()
	for {
		n.mu.Lock()
		got := append([]string{}, n.calls...)
		n.mu.Unlock()
		if len(got) >= calls {
			return got
		}
		select {
		case <-n.changed:
		case <-time.After(scratch.WaitTimeout):
			t.Fatalf("want %d calls, got %v", calls, got)
		}
	}
}

func answering(contentType, body string, code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

func TestWritesAreReportedToObservers(t *testing.T) {
	for name, test := range map[string]struct {
		method, path, body string
		answer             http.HandlerFunc
		want               access.Write
		wantCode           int
		wantObjects        []string
		wantUID            string
	}{
		"a creation with a made name": {
			"POST", "/api/v1/namespaces/ns/configmaps", `{"metadata":{"generateName":"c-"}}`,
			answering("application/json", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c-x"}}`, 201),
			access.Write{Verb: "create", Resource: configMaps, Namespace: "ns"}, 201, []string{"ConfigMap c-x"}, "",
		},
		"an update": {
			"PUT", configMap, `{"metadata":{"name":"c"}}`,
			answering("application/json", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c"}}`, 200),
			access.Write{Verb: "update", Resource: configMaps, Namespace: "ns", Name: "c"}, 200, []string{"ConfigMap c"}, "",
		},
		"a subresource": {
			"PATCH", "/apis/apps/v1/namespaces/ns/deployments/d/scale", `{"spec":{"replicas":2}}`,
			answering("application/json", `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"d"}}`, 200),
			access.Write{Verb: "patch", Resource: deployments, Subresource: "scale", Namespace: "ns", Name: "d"}, 200, []string{"Scale d"}, "",
		},
		"a deletion that a Status answers": {
			"DELETE", configMap, `{"kind":"DeleteOptions","apiVersion":"v1"}`,
			answering("application/json", `{"kind":"Status","apiVersion":"v1","status":"Success","details":{"name":"c","uid":"c1"}}`, 200),
			access.Write{Verb: "delete", Resource: configMaps, Namespace: "ns", Name: "c"}, 200, nil, "c1",
		},
		"a deletion of many": {
			"DELETE", "/api/v1/namespaces/ns/configmaps?labelSelector=a", ``,
			answering("application/json", `{"kind":"ConfigMapList","apiVersion":"v1","items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`, 200),
			access.Write{Verb: "deletecollection", Resource: configMaps, Namespace: "ns"}, 200, []string{"ConfigMap a", "ConfigMap b"}, "",
		},
		"a namespace, which is in none": {
			"DELETE", "/api/v1/namespaces/other", ``,
			answering("application/json", `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"other"}}`, 200),
			access.Write{Verb: "delete", Resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Name: "other"}, 200, []string{"Namespace other"}, "",
		},
		"a refusal": {
			"PUT", configMap, `{"metadata":{"name":"c"}}`,
			answering("application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","code":409}`, 409),
			access.Write{Verb: "update", Resource: configMaps, Namespace: "ns", Name: "c"}, 409, nil, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, n := newBackend(t), newRecordingObserver()
			b.answer = test.answer
			run, _ := grant(t, start(t, b, proxy.Options{InjectOwnerRef: true, WriteObservers: []access.WriteObserver{n}}), owner())
			run.do(test.method, test.path, test.body, nil)
			n.wait(t, 2)
			if diff := cmp.Diff([]access.Write{test.want}, n.writes); diff != "" {
				t.Errorf("write (-want +got):\n%s", diff)
			}
			got := n.answers[0]
			var objects []string
			for _, object := range got.Objects {
				objects = append(objects, object.GetKind()+" "+object.GetName())
			}
			if diff := cmp.Diff(test.wantObjects, objects); diff != "" || got.Code != test.wantCode || string(got.UID) != test.wantUID {
				t.Errorf("answer: want %d and UID %q, got %d and %q; objects (-want +got):\n%s", test.wantCode, test.wantUID, got.Code, got.UID, diff)
			}
		})
	}
}

func TestOtherRequestsAreNotReported(t *testing.T) {
	for name, test := range map[string]struct{ method, path, body string }{
		"of reads":                        {"GET", configMap, ""},
		"of dry runs":                     {"POST", "/api/v1/namespaces/ns/configmaps?dryRun=All", `{"metadata":{}}`},
		"of deletions by dry runs":        {"DELETE", configMap + "?dryRun=All", ""},
		"of dry runs that the body tells": {"DELETE", configMap, `{"dryRun":["All"]}`},
		"of a token of an account":        {"POST", "/api/v1/namespaces/ns/serviceaccounts/a/token", `{}`},
		"of questions":                    {"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", `{}`},
		"of commands in a pod":            {"POST", "/api/v1/namespaces/ns/pods/p/exec?command=ls", ""},
		"of what goes to a service":       {"POST", "/api/v1/namespaces/ns/services/s/proxy/x", ""},
		"of what is no resource":          {"POST", "/version", ""},
		"of what is refused":              {"POST", "/api/v1/namespaces/ns/configmaps", `{`},
	} {
		t.Run(name, func(t *testing.T) {
			b, n := newBackend(t), newRecordingObserver()
			run, revoke := grant(t, start(t, b, proxy.Options{InjectOwnerRef: true, WriteObservers: []access.WriteObserver{n}}), owner())
			run.do(test.method, test.path, test.body, nil)
			revoke()
			if diff := cmp.Diff([]string{"ended"}, n.wait(t, 1)); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADeletionThatOnlyLooksLikeADryRunIsReported(t *testing.T) {
	for name, test := range map[string]struct{ contentType, body string }{
		"the API server reads the options of the body alone":  {"application/json", `{"propagationPolicy":"Background"}`},
		"it reads members by their exact names":               {"application/json", `{"DryRun":["All"]}`},
		"of a member that is there twice it takes the second": {"application/json", `{"dryRun":["All"],"dryRun":[]}`},
		"the proxy does not replace aliases without bounds":   {"application/yaml", "a: &a " + strings.Repeat("x", 30_000) + "\ndryRun: [" + strings.Repeat("*a ,", 1000) + "]"},
		"the API server does not take YAML for JSON":          {"application/json", "dryRun: [All]"},
		"nor a format that it does not have":                  {"text/plain", `{"dryRun":["All"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			b, n := newBackend(t), newRecordingObserver()
			run, _ := grant(t, start(t, b, proxy.Options{WriteObservers: []access.WriteObserver{n}}), owner())
			run.do("DELETE", configMap+"?dryRun=All", test.body, map[string]string{"Content-Type": test.contentType})
			run.do("PUT", configMap, "{}", nil)
			n.wait(t, 2)
			if n.writes[0].Verb != "delete" {
				t.Errorf("want it reported, got %v", n.writes)
			}
			if b.bodies[0] != test.body {
				t.Errorf("the body became %q", b.bodies[0])
			}
		})
	}
}

// encodings has an object in every format of a body.
func encodings(t *testing.T, object runtime.Object) map[string]string {
	t.Helper()
	all := map[string]string{}
	kinds := scheme.Scheme
	for contentType, format := range map[string]runtime.Encoder{
		runtime.ContentTypeJSON:     json.NewSerializerWithOptions(json.DefaultMetaFactory, kinds, kinds, json.SerializerOptions{}),
		runtime.ContentTypeYAML:     json.NewSerializerWithOptions(json.DefaultMetaFactory, kinds, kinds, json.SerializerOptions{Yaml: true}),
		runtime.ContentTypeProtobuf: protobuf.NewSerializer(kinds, kinds),
		runtime.ContentTypeCBOR:     cbor.NewSerializer(kinds, kinds),
	} {
		var body strings.Builder
		if err := format.Encode(object, &body); err != nil {
			t.Fatal(err)
		}
		all[contentType] = body.String()
	}
	return all
}

func TestDeletionsAreReadInEveryFormat(t *testing.T) {
	background := metav1.DeletePropagationBackground
	options := func(version string, dryRun ...string) *metav1.DeleteOptions {
		return &metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "DeleteOptions"}, PropagationPolicy: &background, DryRun: dryRun}
	}
	eviction := func(version string, in *metav1.DeleteOptions) *policyv1.Eviction {
		return &policyv1.Eviction{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "Eviction"}, ObjectMeta: metav1.ObjectMeta{Name: "p"}, DeleteOptions: in}
	}
	const evict = "/api/v1/namespaces/ns/pods/p/eviction"
	for name, test := range map[string]struct {
		method, path string
		body         runtime.Object
		wantReported bool
	}{
		"a deletion":                    {"DELETE", configMap, options("v1"), true},
		"one of another group":          {"DELETE", configMap, options("policy/v1"), true},
		"a dry run":                     {"DELETE", configMap, options("v1", "All"), false},
		"a collection":                  {"DELETE", "/api/v1/namespaces/ns/configmaps", options("v1"), true},
		"a dry run of a collection":     {"DELETE", "/api/v1/namespaces/ns/configmaps", options("v1", "All"), false},
		"an eviction":                   {"POST", evict, eviction("policy/v1", nil), true},
		"an older eviction":             {"POST", evict, eviction("policy/v1beta1", options("v1")), true},
		"a dry run of an eviction":      {"POST", evict, eviction("policy/v1", options("v1", "All")), false},
		"a dry run of it, in the query": {"POST", evict + "?dryRun=All", eviction("policy/v1", nil), false},
	} {
		for contentType, body := range encodings(t, test.body) {
			t.Run(name+" as "+contentType, func(t *testing.T) {
				b, n := newBackend(t), newRecordingObserver()
				b.answer = answering("application/json", `{"kind":"Status","apiVersion":"v1","status":"Success","details":{"uid":"u"}}`, 200)
				run, revoke := grant(t, start(t, b, proxy.Options{WriteObservers: []access.WriteObserver{n}}), owner())
				run.do(test.method, test.path, body, map[string]string{"Content-Type": contentType})
				revoke()
				want := []string{"ended"}
				if test.wantReported {
					want = []string{"writing", "answered", "ended"}
				}
				if diff := cmp.Diff(want, n.wait(t, len(want))); diff != "" {
					t.Fatalf("reported (-want +got):\n%s", diff)
				}
				if test.wantReported && (n.answers[0].Unknown != "" || n.answers[0].UID != "u" || !n.writes[0].Deletes()) {
					t.Errorf("want the result known, got %+v of %+v", n.answers[0], n.writes[0])
				}
				if len(b.bodies) != 1 || b.bodies[0] != body {
					t.Errorf("the body became %q", b.bodies)
				}
			})
		}
	}
}

func TestResponsesAreReadInEveryFormat(t *testing.T) {
	object := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u", ResourceVersion: "5"}, Data: map[string]string{"a": "b"}}
	list := &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, Items: []corev1.ConfigMap{{ObjectMeta: object.ObjectMeta, Data: object.Data}}}
	status := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Success", Details: &metav1.StatusDetails{UID: "u"}}
	for name, test := range map[string]struct {
		method, path string
		body         runtime.Object
		want         string
	}{
		"an object":        {"PUT", configMap, object, "ConfigMap u 5 b"},
		"a list":           {"DELETE", "/api/v1/namespaces/ns/configmaps", list, "ConfigMap u 5 b"},
		"a deleted object": {"DELETE", configMap, object, "ConfigMap u 5 b"},
		"a Status":         {"DELETE", configMap, status, "UID u"},
	} {
		for contentType, body := range encodings(t, test.body) {
			t.Run(name+" as "+contentType, func(t *testing.T) {
				if got := describe(responseTo(t, test.method, test.path, contentType, body)); got != test.want {
					t.Errorf("want %s, got %s", test.want, got)
				}
			})
		}
	}
	for name, test := range map[string]struct{ method, path, contentType, body, want string }{
		"partial metadata":             {"PATCH", configMap, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"uid":"u","resourceVersion":"5"}}`, "partial PartialObjectMetadata u 5 "},
		"partial metadata as Protobuf": {"PATCH", configMap, runtime.ContentTypeProtobuf, partialProtobuf(t), "partial PartialObjectMetadata u 5 "},
		"a list of partial metadata":   {"DELETE", "/api/v1/namespaces/ns/configmaps", "application/json", `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[{"metadata":{"uid":"u","resourceVersion":"5"}}]}`, "partial PartialObjectMetadata u 5 "},
		"a Table":                      {"PUT", configMap, "application/json", `{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"uid":"u","resourceVersion":"5"}}}]}`, "partial PartialObjectMetadata u 5 "},
		"a Table without objects":      {"PUT", configMap, "application/json", `{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"cells":["c"]}]}`, "unknown: unreadable response"},
		"an empty list":                {"DELETE", "/api/v1/namespaces/ns/configmaps", "application/json", `{"kind":"ConfigMapList","apiVersion":"v1","items":[]}`, "nothing"},
		"Protobuf of an unknown kind":  {"PUT", "/apis/x.io/v1/namespaces/ns/xs/x", runtime.ContentTypeProtobuf, unknownProtobuf(t), "unknown: unreadable response"},
		"half of it":                   {"PUT", configMap, "application/json", `{"kind":"ConfigMap","apiVersion":"v1"`, "unknown: unreadable response"},
		"nothing at all":               {"PUT", configMap, "application/json", ``, "unknown: unreadable response"},
		"another format":               {"PUT", configMap, "text/html", `{"kind":"ConfigMap","apiVersion":"v1"}`, "unknown: unreadable response"},
		"very much":                    {"PUT", configMap, "application/json", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c"},"data":{"a":"` + strings.Repeat("x", 9<<20) + `"}}`, "unknown: unreadable response"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := describe(responseTo(t, test.method, test.path, test.contentType, test.body)); got != test.want {
				t.Errorf("want %s, got %s", test.want, got)
			}
		})
	}
}

func partialProtobuf(t *testing.T) string {
	t.Helper()
	var body strings.Builder
	object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "5"}}
	if err := protobuf.NewSerializer(metainternalversion.Scheme, metainternalversion.Scheme).Encode(object, &body); err != nil {
		t.Fatal(err)
	}
	return body.String()
}

func unknownProtobuf(t *testing.T) string {
	t.Helper()
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "x.io/v1", Kind: "X"}}
	body, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return "k8s\x00" + string(body)
}

// responseTo returns the report of a write that gets the answer.
func responseTo(t *testing.T, method, path, contentType, answer string) access.Response {
	t.Helper()
	b, n := newBackend(t), newRecordingObserver()
	b.answer = answering(contentType, answer, 200)
	run, _ := grant(t, start(t, b, proxy.Options{WriteObservers: []access.WriteObserver{n}}), owner())
	run.do(method, path, "", nil)
	n.wait(t, 2)
	return n.answers[0]
}

func describe(response access.Response) string {
	switch {
	case response.Unknown != "":
		return "unknown: " + string(response.Unknown)
	case response.UID != "":
		return "UID " + string(response.UID)
	case len(response.Objects) == 0 && response.Objects != nil:
		return "nothing"
	case len(response.Objects) == 0:
		return "not named"
	}
	o := response.Objects[0]
	value, _, _ := unstructured.NestedString(o.Object, "data", "a")
	text := fmt.Sprintf("%s %s %s %s", o.GetKind(), o.GetUID(), o.GetResourceVersion(), value)
	if response.Partial {
		return "partial " + text
	}
	return text
}

func TestUnknownResponses(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return answering("application/json", `{"kind":"Status","apiVersion":"v1"}`, code)
	}
	for name, test := range map[string]struct {
		body   string
		answer http.HandlerFunc
		want   access.Response
	}{
		"when the connection breaks": {"{}", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, access.Response{Unknown: access.NoResponse}},
		"when it breaks in the answer's middle": {"{}", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"ConfigMap"`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, access.Response{Code: http.StatusOK, Unknown: access.UnreadableResponse}},
		"when nobody can tell whether it is a dry run": {"k8s\x00\x01", answering("application/json", `{"kind":"ConfigMap","apiVersion":"v1"}`, 200), access.Response{Code: 200, Unknown: access.UnreadableOptions}},
		"not when the API server cannot tell either":   {"k8s\x00\x01", status(400), access.Response{Code: 400}},
		"when the API server has failed":               {"{}", status(500), access.Response{Code: 500, Unknown: access.ServerError}},
		"when it has given up waiting":                 {"{}", status(504), access.Response{Code: 504, Unknown: access.ServerError}},
		"not when it refuses":                          {"{}", status(409), access.Response{Code: 409}},
	} {
		t.Run(name, func(t *testing.T) {
			b, n := newBackend(t), newRecordingObserver()
			b.answer = test.answer
			run, _ := grant(t, start(t, b, proxy.Options{WriteObservers: []access.WriteObserver{n}}), owner())
			request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, run.base+configMap, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if response, err := run.http.Do(request); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
			n.wait(t, 2)
			if diff := cmp.Diff([]access.Response{test.want}, n.answers); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAWriteOfAClientThatHangsUpIsReported(t *testing.T) {
	b, n := newBackend(t), newRecordingObserver()
	arrived := make(chan struct{})
	b.answer = func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}
	run, _ := grant(t, start(t, b, proxy.Options{WriteObservers: []access.WriteObserver{n}}), owner())
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, run.base+configMap, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-arrived
		cancel()
	}()
	if response, err := run.http.Do(request); err == nil {
		_ = response.Body.Close()
		t.Fatal("want no answer")
	}
	n.wait(t, 2)
	if diff := cmp.Diff([]access.Response{{Unknown: access.NoResponse}}, n.answers); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

// leaseLosing is a WriteObserver in whose BeforeWrite the lease is lost.
type leaseLosing struct {
	*recordingObserver

	lease *toggle
}

func (c leaseLosing) BeforeWrite(session *access.Session, write access.Write) func(access.Response) {
	c.lease.closed.Store(true)
	return c.recordingObserver.BeforeWrite(session, write)
}

func TestAWriteThatTheFenceRefusesIsReported(t *testing.T) {
	b, n, lease := newBackend(t), newRecordingObserver(), &toggle{}
	run, _ := grant(t, start(t, b, proxy.Options{Fence: lease, WriteObservers: []access.WriteObserver{leaseLosing{n, lease}}}), owner())
	if code, _ := run.do("DELETE", configMap, "", nil); code != http.StatusServiceUnavailable || b.arrivals() > 0 {
		t.Errorf("want 503 and nothing forwarded, got %d", code)
	}
	n.wait(t, 2)
	if n.answers[0].Code != http.StatusServiceUnavailable || n.answers[0].Unknown != "" {
		t.Errorf("want the refusal as the answer, got %+v", n.answers[0])
	}
}

func TestAnswersToWritesAreJSON(t *testing.T) {
	for name, test := range map[string]struct{ accept, want string }{
		"as the client wants it anyway":           {"application/json", "application/json"},
		"where the client would take it":          {"application/vnd.kubernetes.protobuf, application/json;q=0.5", "application/json"},
		"where the client takes anything":         {"*/*", "application/json"},
		"but not where it takes Protobuf alone":   {"application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"},
		"nor where it wants a Table":              {"application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=Table;v=v1;g=meta.k8s.io"},
		"but where it takes a Table or an object": {"application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "application/json"},
		"nor where it refuses JSON":               {"application/json;q=0, application/yaml", "application/json;q=0, application/yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			b, n := newBackend(t), newRecordingObserver()
			run, _ := grant(t, start(t, b, proxy.Options{WriteObservers: []access.WriteObserver{n}}), owner())
			run.do("PUT", configMap, "{}", map[string]string{"Accept": test.accept, "Accept-Encoding": "gzip"})
			if got := b.requests[0].Header; got.Get("Accept") != test.want || got.Get("Accept-Encoding") != "identity" {
				t.Errorf("want %q and no compression, got %q and %q", test.want, got.Get("Accept"), got.Get("Accept-Encoding"))
			}
		})
	}
}

func TestAWriteIsNoUpgrade(t *testing.T) {
	b, n := newBackend(t), newRecordingObserver()
	run, _ := grant(t, start(t, b, proxy.Options{WriteObservers: []access.WriteObserver{n}}), owner())
	run.do("PUT", configMap, "{}", map[string]string{"Connection": "Upgrade, X-Hop", "Upgrade": "SPDY/3.1", "X-Hop": "yes"})
	n.wait(t, 2)
	if got := b.requests[0].Header; got.Get("Upgrade") != "" || got.Get("X-Hop") != "" {
		t.Errorf("hop by hop arrived %v", got)
	}
}

func TestTheEndOfATokenEndsWhatItBegan(t *testing.T) {
	for name, header := range map[string]http.Header{
		"a watch":    {},
		"an upgrade": {"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newRecordingObserver()
			p := startWith(t, &rest.Config{Host: newStreams(t).URL}, proxy.Options{WriteObservers: []access.WriteObserver{n}})
			run, revoke := grant(t, p, owner())
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, run.base+"/api/v1/namespaces/ns/pods/p/exec", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header = header
			response, err := run.http.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			begun := make([]byte, len("begun\n"))
			if _, err := io.ReadFull(response.Body, begun); err != nil {
				t.Fatal(err)
			}
			revoke()
			if _, err := io.ReadAll(response.Body); err == nil && name == "a watch" {
				t.Error("want the stream to be cut")
			}
			n.wait(t, 1)
		})
	}
}

// TestTheEndOfATokenDoesNotWaitForItsClient lets clients go on that neither end nor hang
// up, as what a run leaves behind may do.
func TestTheEndOfATokenDoesNotWaitForItsClient(t *testing.T) {
	for name, request := range map[string]string{
		"that sends a body byte by byte":           "PUT " + configMap + " HTTP/1.1\r\n" + head + "Expect: 100-continue\r\nContent-Length: 3000000\r\n\r\n",
		"that sends what is passed on, bit by bit": "POST /version HTTP/1.1\r\n" + head + "Expect: 100-continue\r\nContent-Length: 3000000\r\n\r\n",
		"that does not read its answer":            "GET /version HTTP/1.1\r\n" + head + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			b, n := newBackend(t), newRecordingObserver()
			var sent atomic.Int64
			b.answer = func(w http.ResponseWriter, _ *http.Request) {
				for chunk := make([]byte, 1<<20); ; sent.Add(1) {
					if _, err := w.Write(chunk); err != nil {
						return
					}
				}
			}
			c := newWire(t, start(t, b, proxy.Options{InjectOwnerRef: true, WriteObservers: []access.WriteObserver{n}}))
			conn, err := c.dial()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, strings.ReplaceAll(request, "TOKEN", c.token))
			reader := bufio.NewReader(conn)
			if _, err := reader.Peek(1); err != nil { // It is under way.
				t.Fatal(err)
			}
			if strings.HasPrefix(request, "GET") {
				for before := int64(-1); before < sent.Load(); time.Sleep(100 * time.Millisecond) {
					before = sent.Load()
				}
			}
			c.revoke()
			goesOn := time.NewTicker(10 * time.Millisecond)
			defer goesOn.Stop()
			deadline := time.After(scratch.WaitTimeout)
			for {
				select {
				case <-n.changed:
					return
				case <-goesOn.C:
					if !strings.HasPrefix(request, "GET") {
						_, _ = io.WriteString(conn, " ")
					}
				case <-deadline:
					t.Fatal("the request outlives its token")
				}
			}
		})
	}
}

func TestSessionEndedComesAfterAllResponses(t *testing.T) {
	b, n := newBackend(t), newRecordingObserver()
	arrived := make(chan struct{})
	b.answer = func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}
	run, revoke := grant(t, start(t, b, proxy.Options{WriteObservers: []access.WriteObserver{n}}), owner())
	go func() {
		<-arrived
		revoke()
		revoke() // Once more does no harm.
	}()
	run.do("PUT", configMap, "{}", nil)
	if diff := cmp.Diff([]string{"writing", "answered", "ended"}, n.wait(t, 3)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestConfinement(t *testing.T) {
	clusterOwner := owner()
	clusterOwner.Namespace = ""
	b := newBackend(t)
	p := start(t, b, proxy.Options{IsConfined: func(o access.Owner) bool { return o.UID == "uid-1" }})
	for name, test := range map[string]struct {
		owner        access.Owner
		method, path string
		want         bool
	}{
		"a write in the CR's namespace":                  {owner(), "POST", "/api/v1/namespaces/ns/configmaps", true},
		"a write in another one":                         {owner(), "POST", "/api/v1/namespaces/other/configmaps", false},
		"a read in another one":                          {owner(), "GET", "/api/v1/namespaces/other/configmaps", true},
		"a deletion in all":                              {owner(), "DELETE", "/api/v1/configmaps", false},
		"a cluster-scoped object":                        {owner(), "PUT", "/apis/rbac.authorization.k8s.io/v1/clusterroles/r", false},
		"the CR's namespace itself":                      {owner(), "PATCH", "/api/v1/namespaces/ns", false},
		"its status":                                     {owner(), "PATCH", "/api/v1/namespaces/ns/status", false},
		"another group's kind of that name, in it":       {owner(), "PUT", "/apis/x.io/v1/namespaces/ns/namespaces/ns", true},
		"a question":                                     {owner(), "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", true},
		"a command in a pod":                             {owner(), "POST", "/api/v1/namespaces/ns/pods/p/exec", true},
		"a command in another namespace's pod":           {owner(), "GET", "/api/v1/namespaces/other/pods/p/exec", false},
		"a request through a node":                       {owner(), "GET", "/api/v1/nodes/n/proxy/run", false},
		"logs elsewhere":                                 {owner(), "GET", "/api/v1/namespaces/other/pods/p/log", true},
		"what is no resource":                            {owner(), "POST", "/debug/flags", false},
		"the status of a cluster-scoped CR":              {clusterOwner, "PATCH", "/apis/g.io/v1/ks/cr/status", true},
		"another CR of its kind":                         {clusterOwner, "PATCH", "/apis/g.io/v1/ks/other/status", false},
		"a namespaced object for a cluster-scoped CR":    {clusterOwner, "POST", "/api/v1/namespaces/ns/configmaps", false},
		"another kind's object with a cluster CR's name": {clusterOwner, "PATCH", "/apis/g.io/v1/others/cr", false},
	} {
		t.Run(name, func(t *testing.T) {
			before := b.arrivals()
			run, _ := grant(t, p, test.owner)
			code, answer := run.do(test.method, test.path, "{}", nil)
			if passed := code == http.StatusOK && b.arrivals() == before+1; passed != test.want {
				t.Errorf("want it forwarded: %v, got %d %s", test.want, code, answer)
			}
			if !test.want && (code != http.StatusForbidden || !strings.Contains(answer, "confineToNamespace") || !strings.Contains(answer, `"reason":"Forbidden"`)) {
				t.Errorf("want 403 with the reason, got %d %s", code, answer)
			}
			free := test.owner
			free.UID = "uid-2"
			other, _ := grant(t, p, free)
			if code, answer := other.do(test.method, test.path, "{}", nil); code != http.StatusOK {
				t.Errorf("the run of an owner that is not confined got %d %s", code, answer)
			}
		})
	}
}

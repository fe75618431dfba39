package engine

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/ensign-operator/ensign/internal/chart/ledger"
	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/release"
	"github.com/ensign-operator/ensign/internal/chart/runner"
	"github.com/ensign-operator/ensign/internal/chart/seal"
	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

const text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n"

// world has a release and its object at an API server, and a chart-exec that does what it is
// told.
type world struct {
	t *testing.T

	mu       sync.Mutex
	releases []*release.Release
	object   map[string]any // nil if it is gone
	repairs  int
	// forbidden is the method that the API server forbids for the object; "any" is each.
	forbidden     string
	deletions     int
	namespaceGoes bool
	// annotations are those of the Secrets.
	annotations map[string]string
	// sources are objects of valuesFrom, by "secrets/NAME" or "configmaps/NAME".
	sources map[string]map[string]any

	orders  []order.Order
	outcome content.Outcome // of the next order
	idle    bool            // a run that succeeds leaves no release
	leaves  bool            // an uninstallation leaves the object
	loses   bool            // an uninstallation ends without its record

	engine     *Engine
	kubeconfig []byte
}

func newWorld(t *testing.T, change func(*watches.Watch)) *world {
	t.Helper()
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "templates/a.yaml": text,
		"values.schema.json": `{"properties":{"size":{"type":"integer"}}}`,
	})
	watch := watches.Watch{
		GVK: schema.GroupVersionKind{Version: "v1", Kind: "K"}, Timeout: 10 * time.Minute,
		Chart: &watches.Chart{Path: dir, MaxHistory: 7, Drift: watches.DriftRepair, CRDs: watches.CRDsCreate},
	}
	if change != nil {
		change(&watch)
	}
	w := &world{t: t, outcome: content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful}}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	var err error
	if w.engine, err = New(watch, w, mapper, func(context.Context) (seal.Keys, error) { return testKeys, nil }, &ledger.Store{}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	w.kubeconfig = []byte(`{"clusters":[{"name":"a","cluster":{"server":"` + server.URL + `"}}],"contexts":[{"name":"a","context":{"cluster":"a"}}],"current-context":"a"}`)
	return w
}

// testKeys seal the records of the world's releases.
var testKeys = seal.Keys{{Number: 1, Secret: []byte(strings.Repeat("k", 32))}}

// has adds a revision that the manager has made, with the object in the cluster.
func (w *world) has(status common.Status, digest string) {
	r := w.found(status)
	r.Labels = map[string]string{order.DigestLabel: digest}
	w.seal(r)
}

// seal makes a revision the manager's own: of the attempt that has begun, or of an earlier one.
func (w *world) seal(r *release.Release) {
	w.t.Helper()
	owner := ownerOf(resource(nil, nil))
	l := w.engine.ledger
	entry, err := l.Get(w.t.Context(), owner)
	if err != nil {
		w.t.Fatal(err)
	}
	running := entry.Attempt != ""
	if !running {
		entry.Namespace, entry.Name = "ns", "r"
		entry.Begin(order.Install)
	}
	known := order.Revision{Version: r.Version, Attempt: entry.Attempt}
	known.Names, err = release.NamesOf(r)
	if err = errors.Join(err, release.Seal(r, order.Seal{Owner: owner, Keys: release.KeysFor(testKeys, owner)}, entry.Attempt), entry.Add(known)); err != nil {
		w.t.Fatal(err)
	}
	if !running {
		entry.Conclude(map[int]string{r.Version: r.Info.Status.String()}, func(int) bool { return true })
	}
	if err := l.Put(w.t.Context(), entry); err != nil {
		w.t.Fatal(err)
	}
}

// found adds a revision that somebody else has made.
func (w *world) found(status common.Status) *release.Release {
	r := &release.Release{
		Name: "r", Namespace: "ns", Version: len(w.releases) + 1, Manifest: text,
		Info: &helm.Info{Status: status, Notes: "some \x1b notes"}, Chart: &chart.Chart{Metadata: &chart.Metadata{Name: "c", Version: "1.0.0"}},
	}
	w.releases = append(w.releases, r)
	w.object = map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"},
		"metadata": map[string]any{
			"name": "a", "namespace": "ns", "labels": map[string]any{"app.kubernetes.io/managed-by": "Helm"},
			"annotations": map[string]any{"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "ns"},
		},
	}
	return r
}

// ServeHTTP implements http.Handler: what the engine asks of an API server.
func (w *world) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var body any = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
	code := http.StatusOK
	switch name := path.Base(request.URL.Path); {
	case strings.HasSuffix(request.URL.Path, "/namespaces/ns"):
		namespace := &corev1.Namespace{TypeMeta: metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
		if w.namespaceGoes {
			namespace.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		body = namespace
	case name == "secrets":
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}}
		for _, secret := range w.secrets() {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: secret.ObjectMeta})
		}
		body = list
	case w.sources[path.Base(path.Dir(request.URL.Path))+"/"+name] != nil:
		body = w.sources[path.Base(path.Dir(request.URL.Path))+"/"+name]
	case strings.Contains(request.URL.Path, "/secrets/sh.helm."):
		i := slices.IndexFunc(w.secrets(), func(s corev1.Secret) bool { return s.Name == name })
		if i < 0 {
			code = http.StatusNotFound
			break
		}
		body = w.secrets()[i]
		switch request.Method {
		case http.MethodDelete:
			w.releases = slices.Delete(w.releases, i, i+1)
		case http.MethodPut:
			written, err := io.ReadAll(request.Body)
			secret, decodeErr := runtime.Decode(scheme.Codecs.UniversalDeserializer(), written)
			if err := errors.Join(err, decodeErr); err != nil {
				w.t.Error(err)
				break
			}
			w.releases[i].Info.Status = common.Status(secret.(*corev1.Secret).Labels["status"])
		}
	case w.forbidden != "" && (w.forbidden == request.Method || w.forbidden == "any"):
		code = http.StatusForbidden
		body = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "not for you"}
	case request.Method == http.MethodDelete:
		w.deletions++
		w.object = nil
	case request.Method == http.MethodPatch:
		var applied map[string]any
		if err := json.NewDecoder(request.Body).Decode(&applied); err != nil {
			w.t.Error(err)
		}
		merged := merge(w.object, applied)
		if request.URL.Query().Get("dryRun") == "" {
			w.object = merged
			w.repairs++
		}
		body = merged
	case w.object != nil && !slices.Contains([]string{"login", "sizes", "mine"}, name):
		body = w.object
	default:
		code = http.StatusNotFound
	}
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(code)
	if err := json.NewEncoder(answer).Encode(body); err != nil {
		w.t.Error(err)
	}
}

// secrets returns the releases as Helm stores them.
func (w *world) secrets() []corev1.Secret {
	client := fake.NewClientset().CoreV1().Secrets("ns")
	storage := driver.NewSecrets(client)
	for _, r := range w.releases {
		if err := storage.Create("sh.helm.release.v1.r.v"+strconv.Itoa(r.Version), r); err != nil {
			w.t.Error(err)
		}
	}
	list, err := client.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Error(err)
	}
	for i := range list.Items {
		list.Items[i].Annotations = w.annotations
	}
	return list.Items
}

// merge is what server-side apply does with these objects.
func merge(live, applied map[string]any) map[string]any {
	merged := maps.Clone(live)
	if merged == nil {
		merged = map[string]any{}
	}
	for key, value := range applied {
		inner, isMap := value.(map[string]any)
		old, _ := merged[key].(map[string]any)
		if isMap {
			merged[key] = merge(old, inner)
		} else {
			merged[key] = value
		}
	}
	return merged
}

// Execute implements Runner: it is a chart-exec.
func (w *world) Execute(_ context.Context, portable run.Spec, _ func([]byte)) run.Result {
	spec, err := runner.Decode(portable)
	if err != nil {
		w.t.Error(err)
	}
	o := spec.Order
	w.orders = append(w.orders, o)
	switch {
	case w.outcome.Verdict != content.Succeeded || w.idle:
	case o.Action == order.Uninstall:
		w.releases = nil
		if !w.loses {
			w.has(common.StatusUninstalled, "")
		}
		if !w.leaves {
			w.object = nil
		}
	default:
		if o.Action == order.Reinstall || o.TakeOver {
			w.releases = nil
		}
		r := w.found(common.StatusDeployed)
		r.Labels = map[string]string{order.DigestLabel: o.Digest}
		if o.Action == order.Install {
			r.Info.FirstDeployed, r.Info.LastDeployed = time.Unix(1, 0), time.Unix(1, 0)
		}
		w.seal(r)
	}
	return run.Result{Outcome: w.outcome}
}

// Remove implements Runner.
func (*world) Remove(string) error { return nil }

// Evaluate implements Runner.
func (*world) Evaluate(texts []string) (results []order.Evaluated, err error) {
	for _, text := range texts {
		results = append(results, order.Evaluated{Text: text})
	}
	return results, nil
}

func resource(spec map[string]any, annotations map[string]string) *unstructured.Unstructured {
	cr := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "K", "spec": spec}}
	cr.SetName("r")
	cr.SetUID("u1")
	cr.SetNamespace("ns")
	all := map[string]string{}
	for name, value := range annotations {
		all[watches.ChartAnnotations+name] = value
	}
	cr.SetAnnotations(all)
	return cr
}

// prepare returns work that was not refused.
func (w *world) prepare(cr *unstructured.Unstructured, finalizing bool) content.Work {
	w.t.Helper()
	prepared, refusal := w.engine.Prepare(w.t.Context(), content.Request{Object: cr, Finalizing: finalizing})
	if refusal != nil {
		w.t.Fatalf("refused: %+v", *refusal)
	}
	return prepared
}

// digest is that of the CR without a spec.
func (w *world) digest() string {
	w.t.Helper()
	return w.prepare(resource(nil, nil), false).(*work).values.Digest
}

// run looks and runs as the controller does.
func (w *world) run(ctx context.Context, cr *unstructured.Unstructured, finalizing bool) (result content.Result, settled bool) {
	w.t.Helper()
	prepared := w.prepare(cr, finalizing)
	job := content.Job{Run: content.Run{ID: "run-1"}, Kubeconfig: w.kubeconfig, Working: func(string) {}}
	if result, settled := prepared.Settled(ctx, job); settled {
		return result, true
	}
	return prepared.Run(ctx, job), false
}

// shownAs returns what a result says: its conditions as "Type=Status Reason".
func shownAs(result content.Result) string {
	var all []string
	for _, c := range result.Conditions {
		all = append(all, c.Type+"="+string(c.Status)+" "+c.Reason)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// breakChart makes the chart one that cannot be loaded.
func (w *world) breakChart() {
	w.t.Helper()
	scratch.Write(w.t, w.engine.Watch.Chart.Path, map[string]string{"Chart.yaml": "\t"})
}

// addTemplate adds a template to the chart.
func (w *world) addTemplate(text string) {
	w.t.Helper()
	scratch.Write(w.t, w.engine.Watch.Chart.Path, map[string]string{"templates/added.yaml": text})
}

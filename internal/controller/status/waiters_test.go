package status_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling/statusreaders"
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/wait"
)

// waitTimeout only ends what hangs.
const waitTimeout = time.Minute

// byKstatus judges by kstatus itself.
func byKstatus(t *testing.T, cr *unstructured.Unstructured) string {
	t.Helper()
	result, err := status.Compute(cr)
	if err != nil {
		t.Fatal(err)
	}
	return string(result.Status)
}

// byFlux judges by the reader of states with which Flux polls objects that have no expressions.
func byFlux(t *testing.T, cr *unstructured.Unstructured) string {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(cr.GroupVersionKind(), meta.RESTScopeNamespace)
	result, err := statusreaders.NewDefaultStatusReader(mapper).ReadStatusForObject(t.Context(), nil, cr)
	if err != nil {
		t.Fatal(err)
	}
	return string(result.Status)
}

// server is an API server that has one CR.
type server struct {
	cr     *unstructured.Unstructured
	getter *genericclioptions.ConfigFlags
}

func serve(t *testing.T, cr *unstructured.Unstructured) *server {
	t.Helper()
	s := &server{cr: cr.DeepCopy(), getter: genericclioptions.NewConfigFlags(false)}
	s.cr.SetAPIVersion("example.com/v1")
	s.cr.SetKind("Hello")
	s.cr.SetNamespace("shop")
	listening := httptest.NewServer(s)
	t.Cleanup(func() {
		listening.CloseClientConnections()
		listening.Close()
	})
	cache := filepath.Join(t.TempDir(), "cache")
	s.getter.APIServer, s.getter.CacheDir = &listening.URL, &cache
	return s
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	one, _ := s.cr.MarshalJSON()
	group := `{"name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"}],"preferredVersion":{"groupVersion":"example.com/v1","version":"v1"}}`
	switch path := strings.Trim(r.URL.Path, "/"); {
	case path == "api":
		fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
	case path == "api/v1":
		fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`)
	case path == "apis":
		fmt.Fprintf(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[%s]}`, group)
	case path == "apis/example.com":
		fmt.Fprint(w, strings.Replace(group, "{", `{"kind":"APIGroup","apiVersion":"v1",`, 1))
	case path == "apis/example.com/v1":
		fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"example.com/v1","resources":[{"name":"hellos","singularName":"hello","namespaced":true,"kind":"Hello","verbs":["get","list","watch"]}]}`)
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r, one)
	case strings.HasSuffix(path, "/"+s.cr.GetName()):
		_, _ = w.Write(one)
	default:
		fmt.Fprintf(w, `{"kind":"HelloList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"7"},"items":[%s]}`, one)
	}
}

// watch sends the CR where the client asks for what is there already, and then nothing.
func (s *server) watch(w http.ResponseWriter, r *http.Request, one []byte) {
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		mark := map[string]any{"type": "BOOKMARK", "object": map[string]any{"apiVersion": "example.com/v1", "kind": "Hello", "metadata": map[string]any{
			"resourceVersion": "7", "annotations": map[string]any{"k8s.io/initial-events-end": "true"},
		}}}
		fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", one)
		_ = json.NewEncoder(w).Encode(mark)
	}
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// byKubectl judges as `kubectl wait --for=condition=Ready` does that does not wait: "met" or "waits".
func (s *server) byKubectl(t *testing.T) string {
	t.Helper()
	flags := wait.NewWaitFlags(s.getter, genericiooptions.NewTestIOStreamsDiscard())
	flags.ForCondition, flags.Timeout = []string{"condition=Ready"}, 0
	namespace := s.cr.GetNamespace()
	s.getter.Namespace = &namespace
	options, err := flags.ToOptions([]string{"hello/" + s.cr.GetName()})
	if err != nil {
		t.Fatal(err)
	}
	switch err := options.RunWaitContext(t.Context()); {
	case err == nil:
		return "met"
	case strings.Contains(err.Error(), "condition not met"):
		return "waits"
	default:
		t.Fatal(err)
		return ""
	}
}

// byHelm judges by the waiter of `helm install --wait`: what Helm says of the CR when it stops to wait, or
// begins to.
func (s *server) byHelm(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	client := kube.New(s.getter)
	client.SetLogger(&waiting{cancel: cancel})
	waiter, err := client.GetWaiterWithOptions(kube.StatusWatcherStrategy, kube.WithWaitContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	kind := &meta.RESTMapping{
		Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "hellos"}, GroupVersionKind: s.cr.GroupVersionKind(), Scope: meta.RESTScopeNamespace,
	}
	err = waiter.Wait(kube.ResourceList{{Mapping: kind, Namespace: s.cr.GetNamespace(), Name: s.cr.GetName(), Object: s.cr}}, waitTimeout)
	if err == nil {
		return "Current"
	}
	for _, state := range []status.Status{status.InProgressStatus, status.FailedStatus, status.TerminatingStatus} {
		if strings.Contains(err.Error(), "status: "+string(state)) {
			return string(state)
		}
	}
	t.Fatal(err)
	return ""
}

// waiting is a log that ends the wait when Helm says that it waits.
type waiting struct {
	slog.Handler

	cancel context.CancelFunc
}

func (w *waiting) Enabled(context.Context, slog.Level) bool { return true }

func (w *waiting) WithAttrs([]slog.Attr) slog.Handler { return w }

func (w *waiting) WithGroup(string) slog.Handler { return w }

func (w *waiting) Handle(_ context.Context, record slog.Record) error {
	if record.Message == "waiting for resource" {
		w.cancel()
	}
	return nil
}

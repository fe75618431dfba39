package readcache_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// change is an event of a watch.
type change struct {
	Type   string         `json:"type"`
	Object map[string]any `json:"object"`
}

// resource is a kind that the API server serves.
type resource struct {
	metav1.APIResource

	group, version string
	// typed kinds leave apiVersion and kind out of the items of a list.
	typed   bool
	warning string                    // of each answer
	objects map[string]map[string]any // by namespace/name or name
	changes []change
}

// apiServer serves kinds from memory, as far as a cache needs it: discovery, lists
// and watches that begin with what is there.
type apiServer struct {
	*httptest.Server

	mu        sync.Mutex
	moved     *sync.Cond
	resources map[string]*resource // by path of the collection
	revision  int
	// delayed is how many of the last changes no watch tells yet.
	delayed int
	told    int            // of the config maps' changes, by the last watch
	refused map[string]int // HTTP status by name of the resource
	asked   map[string]int // lists and watches by path
	ended   bool
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{resources: map[string]*resource{}, revision: 100, refused: map[string]int{}, asked: map[string]int{}}
	s.moved = sync.NewCond(&s.mu)
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.set(func() { s.ended = true })
		s.CloseClientConnections()
		s.Close()
	})
	s.serve("", "configmaps", "ConfigMap", true, true)
	s.serve("", "secrets", "Secret", true, true)
	s.serve("", "nodes", "Node", false, true)
	s.serve("", "namespaces", "Namespace", false, true)
	s.serve("demo.example.com", "widgets", "Widget", true, false)
	return s
}

func (s *apiServer) config() *rest.Config { return &rest.Config{Host: s.URL, QPS: -1} }

// set changes something that watches wait for.
func (s *apiServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.moved.Broadcast()
}

func (s *apiServer) serve(group, name, kind string, namespaced, typed bool) {
	s.resources[name] = &resource{
		APIResource: metav1.APIResource{Name: name, Kind: kind, Namespaced: namespaced, Verbs: []string{"get", "list", "watch"}},
		group:       group, version: "v1", typed: typed, objects: map[string]map[string]any{},
	}
}

func (r *resource) groupVersion() string {
	return strings.TrimPrefix(r.group+"/"+r.version, "/")
}

// put stores an object and gives what the API server would answer with.
func (s *apiServer) put(kind, namespace, name string, labels map[string]string, data string) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.resources[kind]
	s.revision++
	key := strings.TrimPrefix(namespace+"/"+name, "/")
	uid, event := "uid-"+strconv.Itoa(s.revision), "ADDED"
	if before, ok := r.objects[key]; ok {
		uid, event = before["metadata"].(map[string]any)["uid"].(string), "MODIFIED"
	}
	metadata := map[string]any{"name": name, "uid": uid, "resourceVersion": strconv.Itoa(s.revision)}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	if labels != nil {
		set := map[string]any{}
		for k, v := range labels {
			set[k] = v
		}
		metadata["labels"] = set
	}
	object := map[string]any{"apiVersion": r.groupVersion(), "kind": r.Kind, "metadata": metadata, "data": data}
	r.objects[key] = object
	r.changes = append(r.changes, change{event, object})
	s.moved.Broadcast()
	return (&unstructured.Unstructured{Object: object}).DeepCopy()
}

// remove deletes a config map and gives its UID, "" where there is none.
func (s *apiServer) remove(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.resources["configmaps"]
	object, ok := r.objects[key]
	if !ok {
		return ""
	}
	s.revision++
	last := (&unstructured.Unstructured{Object: object}).DeepCopy()
	last.SetResourceVersion(strconv.Itoa(s.revision))
	delete(r.objects, key)
	r.changes = append(r.changes, change{"DELETED", last.Object})
	s.moved.Broadcast()
	return string(last.GetUID())
}

// delay holds back the last changes from watches.
func (s *apiServer) delay(changes int) { s.set(func() { s.delayed = changes }) }

func (s *apiServer) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group, version := "", parts[1]
	parts = parts[2:]
	if strings.HasPrefix(r.URL.Path, "/apis/") {
		group, version, parts = version, parts[0], parts[1:]
	}
	if len(parts) == 0 {
		s.discover(w, group, version)
		return
	}
	namespace := ""
	if parts[0] == "namespaces" && len(parts) > 2 {
		namespace, parts = parts[1], parts[2:]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[r.URL.Path]++
	resource, ok := s.resources[parts[0]]
	code := s.refused[parts[0]]
	switch {
	case !ok:
		status(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case code != 0:
		status(w, code, map[int]metav1.StatusReason{http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound}[code])
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r, resource, namespace)
	default:
		s.list(w, r, resource, namespace)
	}
}

func status(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: reason, Message: string(reason),
	})
}

func (s *apiServer) discover(w http.ResponseWriter, group, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: strings.TrimPrefix(group+"/"+version, "/")}
	for _, r := range s.resources {
		if r.group == group && r.version == version {
			list.APIResources = append(list.APIResources, r.APIResource)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

func (r *resource) within(namespace string) []map[string]any {
	var found []map[string]any
	for _, key := range slices.Sorted(maps.Keys(r.objects)) {
		if namespace == "" || strings.HasPrefix(key, namespace+"/") {
			found = append(found, r.objects[key])
		}
	}
	return found
}

// list needs the lock.
func (s *apiServer) list(w http.ResponseWriter, request *http.Request, r *resource, namespace string) {
	items := r.within(namespace)
	metadata := map[string]any{"resourceVersion": strconv.Itoa(s.revision)}
	if !r.typed {
		metadata["continue"] = ""
	}
	if limit, err := strconv.Atoi(request.URL.Query().Get("limit")); err == nil && limit < len(items) {
		metadata["continue"], metadata["remainingItemCount"] = "more", len(items)-limit
		items = items[:limit]
	}
	plain := []map[string]any{}
	for _, item := range items {
		item = maps.Clone(item)
		if r.typed {
			delete(item, "apiVersion")
			delete(item, "kind")
		}
		plain = append(plain, item)
	}
	w.Header().Set("Content-Type", "application/json")
	if r.warning != "" {
		w.Header().Set("Warning", r.warning)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": r.groupVersion(), "kind": r.Kind + "List", "metadata": metadata, "items": plain})
}

// watch needs the lock, which it gives up while it waits.
func (s *apiServer) watch(w http.ResponseWriter, request *http.Request, r *resource, namespace string) {
	w.Header().Set("Content-Type", "application/json")
	send := func(c change) {
		if object := c.Object["metadata"].(map[string]any); namespace == "" || object["namespace"] == namespace || c.Type == "BOOKMARK" {
			_ = json.NewEncoder(w).Encode(c)
			w.(http.Flusher).Flush()
		}
	}
	next := len(r.changes)
	if request.URL.Query().Get("sendInitialEvents") == "true" {
		for _, object := range r.within(namespace) {
			send(change{"ADDED", object})
		}
		send(s.bookmark(r, s.revision, map[string]any{"k8s.io/initial-events-end": "true"}))
	} else {
		since, _ := strconv.Atoi(request.URL.Query().Get("resourceVersion"))
		if first := slices.IndexFunc(r.changes, func(c change) bool { return revisionOf(c.Object) > since }); first >= 0 {
			next = first
		}
	}
	if r.Name == "configmaps" {
		s.told = next
	}
	for request.Context().Err() == nil && !s.ended && s.refused[r.Name] == 0 {
		if next < len(r.changes)-s.delayed {
			send(r.changes[next])
			next++
			if r.Name == "configmaps" {
				s.told = next
			}
			continue
		}
		s.moved.Wait()
	}
}

func revisionOf(object map[string]any) int {
	number, _ := strconv.Atoi(object["metadata"].(map[string]any)["resourceVersion"].(string))
	return number
}

func (s *apiServer) bookmark(r *resource, revision int, annotations map[string]any) change {
	return change{"BOOKMARK", map[string]any{
		"apiVersion": r.groupVersion(), "kind": r.Kind,
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(revision), "annotations": annotations},
	}}
}

// names gives the keys of a list's items, or of one object.
func names(body string) (found []string) {
	var answer struct {
		Items    *[]unstructured.Unstructured `json:"-"`
		Raw      *[]map[string]any            `json:"items"`
		Metadata metav1.ObjectMeta            `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		return []string{err.Error()}
	}
	if answer.Raw == nil {
		return []string{fmt.Sprint(answer.Metadata.Namespace, "/", answer.Metadata.Name)}
	}
	for _, item := range *answer.Raw {
		o := unstructured.Unstructured{Object: item}
		found = append(found, cmp.Or(o.GetNamespace(), "-")+"/"+o.GetName())
	}
	return found
}

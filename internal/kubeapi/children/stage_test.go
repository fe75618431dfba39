package children

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/strip"
	"github.com/ensign-operator/ensign/internal/kubeapi/informers"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

var (
	widgets = schema.GroupVersionKind{Group: "g.io", Version: "v1", Kind: "Widget"}
	gadgets = schema.GroupVersionKind{Group: "g.io", Version: "v1", Kind: "Gadget"}
	secret  = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}

	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	roles      = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	events     = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	accounts   = schema.GroupVersionResource{Group: "a.io", Version: "v1", Resource: "accounts"}
	// oldAccounts are served in another version.
	oldAccounts = schema.GroupVersionResource{Group: "a.io", Version: "v0", Resource: "accounts"}
	kindOf      = map[schema.GroupVersionResource]string{configMaps: "ConfigMap", secrets: "Secret", roles: "ClusterRole", events: "Event", accounts: "Account", oldAccounts: "Account"}
)

// stage is Children with a fake API server.
type stage struct {
	*Children
	t      *testing.T
	client *fake.FakeDynamicClient

	mu            sync.Mutex
	version       int
	refused       map[string]error // by resource, "resource in namespace", or "resource version"
	notifications []string
	whats         []string // of the same notifications, in their order
	current       int
	log           []string
	served        []metav1.APIResource
	// discoveryDown lets discovery fail.
	discoveryDown bool
}

func newStage(t *testing.T, o Options, objects ...runtime.Object) *stage {
	t.Helper()
	lists := map[schema.GroupVersionResource]string{}
	for resource, kind := range kindOf {
		lists[resource] = kind + "List"
	}
	s := &stage{t: t, version: 100, refused: map[string]error{}, served: []metav1.APIResource{{Name: "secrets", Kind: "Secret", Namespaced: true}}}
	s.client = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...)
	s.client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, key := range []string{action.GetResource().Resource, action.GetResource().Resource + " in " + action.GetNamespace(), action.GetResource().Resource + " " + action.GetResource().Version} {
			if err := s.refused[key]; err != nil {
				return true, nil, err
			}
		}
		// Its own lists have no version.
		resource := action.GetResource()
		list, err := s.client.Tracker().List(resource, resource.GroupVersion().WithKind(kindOf[resource]), action.GetNamespace())
		if err == nil {
			list.(*unstructured.UnstructuredList).SetResourceVersion(strconv.Itoa(s.version))
		}
		return true, list, err
	})
	if o.Transformer == nil {
		transformer, err := strip.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		o.Transformer = transformer
	}
	o.Logger = logr.New(funcr.New(func(_, args string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.log = append(s.log, args)
	}, funcr.Options{}).GetSink())
	o.Informers = informers.New(informers.Options{Client: s.client, Transform: o.Transformer.Transform, Indexers: Indexers(), Logger: o.Logger})
	o.Discovery = s
	if o.Watches == nil {
		o.Watches = []Watch{{GVK: widgets, Dependents: true}, {GVK: gadgets, Dependents: true}}
	}
	s.Children = New(o)
	s.timing.tick = 20 * time.Millisecond
	return s
}

// start lets everything work until the test ends.
func (s *stage) start() *stage {
	ctx, cancel := context.WithCancel(s.t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { _ = s.options.Informers.Start(ctx) })
	ended.Go(func() { _ = s.Start(ctx) })
	s.t.Cleanup(func() { cancel(); ended.Wait() })
	return s
}

// listen collects the notifications of both watches.
func (s *stage) listen() *stage {
	for _, watch := range []schema.GroupVersionKind{widgets, gadgets} {
		s.Subscribe(s.t.Context(), Scope{watch, true}, func(cr types.NamespacedName, uid types.UID, what string, current int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.whats = append(s.whats, what)
			s.current += current
			s.notifications = append(s.notifications, strings.TrimSpace(fmt.Sprintf("%s %s %s", watch.Kind, cr, uid)))
		})
	}
	return s
}

func (s *stage) note(notification, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whats = append(s.whats, what)
	s.notifications = append(s.notifications, notification)
}

// ServerResourcesForGroupVersion implements Discovery.
func (s *stage) ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.discoveryDown {
		return nil, apierrors.NewServiceUnavailable("down")
	}
	if groupVersion != "v1" {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, groupVersion)
	}
	return &metav1.APIResourceList{APIResources: s.served}, nil
}

func (s *stage) refuse(resource string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[resource] = err
}

// notified waits until exactly these notifications have come, in any order, and forgets them.
func (s *stage) notified(want ...string) {
	s.t.Helper()
	slices.Sort(want)
	var got []string
	s.eventually(func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		got = slices.Sorted(slices.Values(s.notifications))
		if slices.Equal(got, want) {
			s.notifications = nil
			return true
		}
		return false
	}, func() string { return fmt.Sprintf("notified %q, want %q", got, want) })
}

func (s *stage) eventually(done func() bool, otherwise func() string) {
	s.t.Helper()
	for end := time.Now().Add(scratch.WaitTimeout); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.t.Fatalf("%s\n%s", otherwise(), strings.Join(s.log, "\n"))
		}
	}
}

func (s *stage) logged(text string) {
	s.t.Helper()
	s.eventually(func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return strings.Contains(strings.Join(s.log, "\n"), text)
	}, func() string { return "not logged: " + text })
}

// live waits until the resource is watched and its informers have synced.
func (s *stage) live(resource schema.GroupVersionResource) {
	s.t.Helper()
	s.eventually(func() bool {
		s.Children.mu.Lock() // Without the lock of the stage: Children logs under its own, and the log takes that one.
		defer s.Children.mu.Unlock()
		f := s.kinds[resource.GroupResource()]
		return f != nil && f.synced() && f.informers[0].Err() == nil
	}, func() string { return resource.Resource + " is not watched" })
}

func (s *stage) isWatched(resource schema.GroupVersionResource) bool {
	return s.kindOf(resource.GroupResource()) != nil
}

// store writes the object to the API server with a new resource version. The write is foreign.
func (s *stage) store(resource schema.GroupVersionResource, object *unstructured.Unstructured) *unstructured.Unstructured {
	s.t.Helper()
	s.mu.Lock()
	s.version++
	object = object.DeepCopy()
	object.SetResourceVersion(strconv.Itoa(s.version))
	s.mu.Unlock()
	if object.GetUID() == "" {
		object.SetUID(types.UID("uid-" + object.GetResourceVersion()))
	}
	client := s.client.Resource(resource).Namespace(object.GetNamespace())
	_, err := client.Get(s.t.Context(), object.GetName(), metav1.GetOptions{})
	if err == nil {
		_, err = client.Update(s.t.Context(), object, metav1.UpdateOptions{})
	} else {
		_, err = client.Create(s.t.Context(), object, metav1.CreateOptions{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return object
}

func (s *stage) remove(resource schema.GroupVersionResource, object *unstructured.Unstructured) {
	s.t.Helper()
	if err := s.client.Resource(resource).Namespace(object.GetNamespace()).Delete(s.t.Context(), object.GetName(), metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// session returns the session of a run of the widget w.
func session() *access.Session {
	return &access.Session{Owner: access.Owner{GVK: widgets, Namespace: "ns", Name: "w", UID: "uid-w"}}
}

func writeTo(verb string, resource schema.GroupVersionResource, object *unstructured.Unstructured) access.Write {
	return access.Write{Verb: verb, Resource: resource, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// runWrites writes the object as a run of the widget w does.
func (s *stage) runWrites(resource schema.GroupVersionResource, object *unstructured.Unstructured) *unstructured.Unstructured {
	s.t.Helper()
	afterWrite := s.BeforeWrite(session(), writeTo("update", resource, object))
	stored := s.store(resource, object)
	afterWrite(access.Response{Code: 200, Objects: []*unstructured.Unstructured{stored}})
	return stored
}

func object(kind, name string, edits ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	version := map[string]string{"ClusterRole": "rbac.authorization.k8s.io/v1", "Account": "a.io/v1"}[kind]
	if version == "" {
		version = "v1"
	}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name}}}
	if kind != "ClusterRole" {
		o.SetNamespace("ns")
	}
	for _, edit := range edits {
		edit(o)
	}
	return o
}

// ownedBy adds an owner reference; the UID is uid- and the name.
func ownedBy(gvk schema.GroupVersionKind, name string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		o.SetOwnerReferences(append(o.GetOwnerReferences(), metav1.OwnerReference{
			APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: name, UID: types.UID("uid-" + name),
		}))
	}
}

func annotatedFor(gvk schema.GroupVersionKind, name string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{"operator-sdk/primary-resource": name, "operator-sdk/primary-resource-type": gvk.GroupKind().String()})
	}
}

func saying(text string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"text": text} }
}

func inNamespace(namespace string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetNamespace(namespace) }
}

// memoryRecord is a Record in memory.
type memoryRecord struct {
	mu    sync.Mutex
	all   map[string][]Kind
	err   error // of Load
	saves int
	// refusal is the error of Save.
	refusal error
}

func (k *memoryRecord) set(all map[string][]Kind, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all, k.err = all, err
}

func (k *memoryRecord) Load(context.Context) (map[string][]Kind, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.all), k.err
}

func (k *memoryRecord) Save(_ context.Context, watch string, kinds []Kind) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refusal != nil {
		return k.refusal
	}
	k.saves++
	if k.all == nil {
		k.all = map[string][]Kind{}
	}
	k.all[watch] = kinds
	return nil
}

func (k *memoryRecord) of(watch schema.GroupVersionKind) []Kind {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[watch.GroupKind().String()]
}

func edited(o *unstructured.Unstructured, edits ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	o = o.DeepCopy()
	for _, edit := range edits {
		edit(o)
	}
	return o
}

func contextWithTimeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}

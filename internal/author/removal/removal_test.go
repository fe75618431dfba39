package removal

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ensign-operator/ensign/internal/watches"
)

const manifest = `# Comments alone.
---
apiVersion: v1
kind: Namespace
metadata: {name: shop-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: shop-system}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: stores.shop.tld}
spec: {group: shop.tld, names: {kind: Store}, versions: [{name: v1, served: true}]}
`

// cluster is an API server with the objects of a manifest. Deleted objects are gone, the CRD when no
// resource has a finalizer any more.
type cluster struct {
	stores   []metav1.PartialObjectMetadata
	list     error
	goes     bool // The CRD does, when its resources are listed.
	unserved bool
	patch    error
	stuck    bool // The API server could not delete the CRD's resources, and waits until the CRD changes.
	deleted  []string
}

func (c *cluster) has(object client.Object) bool {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if slices.Contains(c.deleted, kind) {
		return kind == "CustomResourceDefinition" && (len(c.held()) > 0 || c.stuck)
	}
	return true
}

func (c *cluster) held() (held []string) {
	for _, store := range c.stores {
		if len(store.Finalizers) > 0 {
			held = append(held, store.Name)
		}
	}
	return held
}

func (c *cluster) client() client.Client {
	gone := apierrors.NewNotFound(schema.GroupResource{}, "")
	return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			if !c.has(object) {
				return gone
			}
			if crd, ok := object.(*unstructured.Unstructured); ok {
				objects, _ := Read(strings.NewReader(manifest))
				crd.Object = objects[2].Object
				if c.stuck {
					crd.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established"}, map[string]any{
						"type": "Terminating", "reason": "InstanceDeletionFailed", "message": "storage is (re)initializing",
					}}}
				}
				if c.unserved {
					crd.Object["spec"].(map[string]any)["versions"] = []any{map[string]any{"name": "v1", "served": false}}
				}
			}
			return nil
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			page, at := list.(*metav1.PartialObjectMetadataList), 0
			if o := (&client.ListOptions{}).ApplyOptions(options); o.Continue != "" {
				at, _ = strconv.Atoi(o.Continue)
			}
			page.Items, page.Continue = nil, ""
			if page.Kind == "StoreList" && at < len(c.stores) {
				page.Items = c.stores[at : at+1]
			}
			if at+1 < len(c.stores) {
				page.Continue = strconv.Itoa(at + 1)
			}
			if c.goes {
				c.deleted, c.list = append(c.deleted, "CustomResourceDefinition"), gone
			}
			return c.list
		},
		Delete: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.DeleteOption) error {
			if !c.has(object) {
				return gone
			}
			c.deleted = append(c.deleted, object.GetObjectKind().GroupVersionKind().Kind)
			return nil
		},
		Patch: func(_ context.Context, _ client.WithWatch, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
			if object.GetObjectKind().GroupVersionKind().Kind == "CustomResourceDefinition" {
				data, err := patch.Data(object)
				c.stuck = c.patch != nil || !strings.Contains(string(data), askedAt)
				return errors.Join(err, c.patch)
			}
			for i := range c.stores {
				if c.stores[i].Name == object.GetName() {
					c.stores[i].Finalizers = object.GetFinalizers()
				}
			}
			return nil
		},
	}).Build()
}

func store(name string, finalizers ...string) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Finalizers: finalizers}}
}

func TestRemoval(t *testing.T) {
	broken := errors.New("refused")
	for name, test := range map[string]struct {
		cluster cluster
		force   bool
		want    string // part of the error; "" is none
		deleted []string
	}{
		"nothing is in use":                                       {cluster{}, false, "", []string{"Namespace", "Deployment", "CustomResourceDefinition"}},
		"a resource without a finalizer":                          {cluster{stores: []metav1.PartialObjectMetadata{store("a")}}, false, "nothing was removed: these custom resources exist:\n  Store ns/a\n", nil},
		"a resource on the second page":                           {cluster{stores: []metav1.PartialObjectMetadata{store("a"), store("b", "ours")}}, false, "\n  Store ns/b, finalizers: ours\n", nil},
		"a list that fails is no empty one":                       {cluster{list: broken}, false, "nothing was removed, because the custom resources cannot be listed: list the Store objects: refused", nil},
		"a CRD that goes meanwhile":                               {cluster{goes: true}, false, "", []string{"CustomResourceDefinition", "Namespace", "Deployment"}},
		"a CRD that nobody can list":                              {cluster{unserved: true}, false, "no version that is served", nil},
		"a CRD that the API server waits with is asked for again": {cluster{stuck: true}, false, "", []string{"Namespace", "Deployment", "CustomResourceDefinition"}},
		"a CRD that nobody can ask for": {cluster{stuck: true, patch: broken}, false,
			"the API server cannot delete the resources of the CustomResourceDefinition stores.shop.tld: storage is (re)initializing\nask again for", []string{"Namespace", "Deployment", "CustomResourceDefinition"}},
		"by force, the manager goes first": {cluster{stores: []metav1.PartialObjectMetadata{store("a", "ours"), store("b", "former")}}, true, "",
			[]string{"Deployment", "Namespace", "CustomResourceDefinition"}},
		"by force, finalizers of others stay": {cluster{stores: []metav1.PartialObjectMetadata{store("a", "theirs", "ours")}}, true,
			"these objects are still there:\n  CustomResourceDefinition stores.shop.tld\nThey may wait for these custom resources, which still have finalizers of other controllers:\n  Store ns/a, finalizers: theirs", nil},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Read(strings.NewReader(manifest))
			if err != nil {
				t.Fatal(err)
			}
			r := Removal{Client: test.cluster.client(), Objects: objects, Say: func(string) {}, Watches: []watches.Watch{
				{GVK: schema.GroupVersionKind{Group: "shop.tld", Version: "v1", Kind: "Store"}, Finalizer: &watches.Finalizer{Name: "ours", Former: "former"}},
			}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			remove := r.Unforced
			if test.force {
				remove = r.Force
			}
			err = remove(ctx)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if diff := cmp.Diff(test.deleted, test.cluster.deleted); diff != "" && (test.want == "" || !test.force) {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadNamesTheDocument(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "there are no objects in it",
		"# Comments alone.\n":         "there are no objects in it",
		manifest + "---\nkind: Foo\n": "document 5: an object needs apiVersion, kind and metadata.name",
		"{":                           "document 1: ",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

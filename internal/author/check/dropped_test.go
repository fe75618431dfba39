package check

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

const olderDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: stores.shop.example.com}
spec:
  group: shop.example.com
  names: {kind: Store, plural: stores}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {size: {type: integer}, users: {type: array, items: {type: object, properties: {name: {type: string}}}}}}
            status: {type: object, properties: {size: {type: integer}}}
`

// A definition that an operator had before it is installed again. What resources have by the newer
// one is said before it is lost.
func TestWhatAnOlderDefinitionDrops(t *testing.T) {
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{"crd.yaml": olderDefinition})
	gvk := kubeschema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Store"}
	store := func(namespace, name string, spec, status map[string]any) runtime.Object {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": spec, "status": status}}
		object.SetGroupVersionKind(gvk)
		object.SetNamespace(namespace)
		object.SetName(name)
		return object
	}
	users := []any{map[string]any{"name": "a", "admin": true}, map[string]any{"admin": false}}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[kubeschema.GroupVersionResource]string{gvk.GroupVersion().WithResource("stores"): "StoreList"},
		store("shop", "a", map[string]any{"size": int64(1), "users": users}, map[string]any{"size": int64(1), "conditions": []any{}, "contentDigest": "d"}),
		store("shop", "b", map[string]any{"motd": "hi", "users": users}, map[string]any{"backup": "s3"}),
		store("other", "c", map[string]any{"motd": "hi"}, nil),
	)
	for name, test := range map[string]struct {
		namespaces, want []string
	}{
		"in all namespaces": {nil, []string{
			"error: the Store other/c, shop/b in the cluster have spec.motd, which this CRD does not have",
			"error: the Store shop/a, shop/b in the cluster have spec.users[*].admin, which this CRD does not have",
			"warning: the Store shop/b in the cluster has status.backup, which this CRD does not have",
		}},
		"in those of the operator": {[]string{"other"}, []string{"error: the Store other/c in the cluster has spec.motd, which this CRD does not have"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Project{CRDs: schema.Load(dir), links: newLinks(dir)}
			u := &Unit{Unit: &source.Unit{Watch: watches.Watch{GVK: gvk}}}
			if err := p.dropped(t.Context(), client, u, test.namespaces); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range p.findings {
				got = append(got, string(f.Severity)+": "+f.Message)
				if f.Line != 9 || !strings.HasSuffix(f.File, "crd.yaml") {
					t.Errorf("the place is %s:%d", f.File, f.Line)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

package operator

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/options"
)

func TestWatchedNamespaces(t *testing.T) {
	got := cacheOptions([]string{"a", "b"}, nil)
	if len(got.DefaultNamespaces) != 2 {
		t.Errorf("want a and b, got %v", got.DefaultNamespaces)
	}
	if all := cacheOptions(nil, nil); all.DefaultNamespaces != nil || all.DefaultTransform == nil {
		t.Errorf("want all namespaces, reduced; got %+v", all)
	}
}

func TestConfinement(t *testing.T) {
	kind := func(name string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "g.io", Version: "v1", Kind: name}
	}
	all := []watches.Watch{{GVK: kind("A"), ConfineToNamespace: true}, {GVK: kind("B")}}
	older := access.Owner{GVK: schema.GroupVersionKind{Group: "g.io", Version: "v1beta1", Kind: "A"}}
	one, every := confinement(config.Options{}, all), confinement(config.Options{Options: options.Options{ConfineToNamespace: true}}, all)
	if !one(access.Owner{GVK: kind("A")}) || !one(older) || one(access.Owner{GVK: kind("B")}) {
		t.Error("want the watch's own word to count, in each version")
	}
	if !every(access.Owner{GVK: kind("A")}) || !every(access.Owner{GVK: kind("B")}) {
		t.Error("want the flag to count for all")
	}
}

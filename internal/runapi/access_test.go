package runapi

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/watches"
)

func TestConfinement(t *testing.T) {
	kind := func(name string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "g.io", Version: "v1", Kind: name}
	}
	all := []watches.Watch{{GVK: kind("A"), ConfineToNamespace: true}, {GVK: kind("B")}}
	older := access.Owner{GVK: schema.GroupVersionKind{Group: "g.io", Version: "v1beta1", Kind: "A"}}
	one, every := Confinement(false, all), Confinement(true, all)
	if !one(access.Owner{GVK: kind("A")}) || !one(older) || one(access.Owner{GVK: kind("B")}) {
		t.Error("want the watch's own word to count, in each version")
	}
	if !every(access.Owner{GVK: kind("A")}) || !every(access.Owner{GVK: kind("B")}) {
		t.Error("want the flag to count for all")
	}
}

package runapi

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/watches"
)

func TestWritesOfRunsToCRsAreKnown(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "g.io", Version: "v1", Kind: "Widget"}
	session := &access.Session{Owner: access.Owner{GVK: gvk, Namespace: "ns", Name: "w", UID: "uid-1"}}
	object := func(kind string) *unstructured.Unstructured {
		cr := &unstructured.Unstructured{}
		cr.SetAPIVersion("g.io/v2") // Of a watched kind in another version.
		cr.SetKind(kind)
		cr.SetUID("uid-1")
		cr.SetGeneration(2)
		return cr
	}
	for name, test := range map[string]struct {
		write access.Write
		kind  string
		code  int
		want  controller.Writer
	}{
		"a patch":                 {access.Write{Verb: "patch"}, "Widget", http.StatusOK, controller.Writer{UID: "uid-1", Name: "Widget ns/w"}},
		"of another kind":         {access.Write{Verb: "patch"}, "Gadget", http.StatusOK, controller.Writer{}},
		"of a status":             {access.Write{Verb: "patch", Subresource: "status"}, "Widget", http.StatusOK, controller.Writer{}},
		"that is refused":         {access.Write{Verb: "patch"}, "Widget", http.StatusConflict, controller.Writer{}},
		"that deletes the object": {access.Write{Verb: "delete"}, "Widget", http.StatusOK, controller.Writer{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewCRWrites([]watches.Watch{{GVK: gvk}})
			w.BeforeWrite(session, test.write)(access.Response{Code: test.code, Objects: []*unstructured.Unstructured{object(test.kind)}})
			if got := w.Writers.WriterOf("uid-1", 2); got != test.want {
				t.Errorf("want %v, got %v", test.want, got)
			}
		})
	}
}

func TestOnlyChildrenThatGoWithTheirCRAreNoted(t *testing.T) {
	child := func(uid types.UID) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "metadata": map[string]any{"namespace": "ns", "name": "backup"}}}
		object.SetOwnerReferences([]metav1.OwnerReference{{UID: uid}})
		return object
	}
	if !isOwned(child("uid-1"), "uid-1") || isOwned(child("uid-2"), "uid-1") {
		t.Error("a child is known by the UID of its owner")
	}
	if got := describe(child("uid-1")); got != "ConfigMap ns/backup" {
		t.Errorf("got %q", got)
	}
}

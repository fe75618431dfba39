package children

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
)

func TestTheRecordIsAConfigMap(t *testing.T) {
	client := fake.NewSimpleDynamicClient(runtime.NewScheme()).Resource(configMaps).Namespace("ns")
	record := ConfigMap{Client: client, Name: "op-children"}
	pods := []Kind{{Version: "v1", Resource: "pods", Namespaced: true}}
	mustSave := func(watch string, kinds []Kind) {
		t.Helper()
		if err := record.Save(t.Context(), watch, kinds); err != nil {
			t.Fatal(err)
		}
	}
	wantLoaded := func(want map[string][]Kind) {
		t.Helper()
		got, err := record.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	wantLoaded(map[string][]Kind{})
	mustSave("Widget.g.io", nil)
	wantLoaded(map[string][]Kind{})
	mustSave("Widget.g.io", pods)
	mustSave("Gadget.g.io", []Kind{{Group: "g.io", Version: "v2", Resource: "things"}})
	wantLoaded(map[string][]Kind{"Widget.g.io": pods, "Gadget.g.io": {{Group: "g.io", Version: "v2", Resource: "things"}}})
	mustSave("Gadget.g.io", nil)
	wantLoaded(map[string][]Kind{"Widget.g.io": pods})

	object, err := client.Get(t.Context(), "op-children", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(object.Object, "what somebody wrote", "data", "Other.g.io"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	wantLoaded(map[string][]Kind{"Widget.g.io": pods})
}

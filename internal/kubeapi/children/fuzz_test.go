package children

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
)

// FuzzRecord reads a record that somebody else has written. It is read as it would be saved again, and each ownership
// record takes as many bytes as one does.
func FuzzRecord(f *testing.F) {
	f.Add(`[{"group":"g","version":"v1","resource":"things","written":"AAAAAAAAAAE"}]`, "AAAAAAAAAAEAAAAAAAAAAg")
	f.Add(`{"group":[]}`, "AA")
	f.Add(`[null,{},{"Resource":"x"}]`, "=\x00")
	f.Fuzz(func(t *testing.T, text, written string) {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "ns", "name": "op-children"}, "data": map[string]any{"W.g": text},
		}}
		record := ConfigMap{Client: fake.NewSimpleDynamicClient(runtime.NewScheme(), object).Resource(configMaps).Namespace("ns"), Name: "op-children"}
		recorded, err := record.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if kinds := recorded["W.g"]; len(kinds) > 0 {
			if err := record.Save(t.Context(), "W.g", kinds); err != nil {
				t.Fatal(err)
			}
			again, err := record.Load(t.Context())
			before, _ := json.Marshal(recorded)
			after, _ := json.Marshal(again)
			if err != nil || string(before) != string(after) {
				t.Errorf("%s became %s, %v", before, after, err)
			}
		}
		watch, resource := schema.GroupKind{Group: "g", Kind: "W"}, schema.GroupResource{Resource: "things"}
		var p, again ownershipRecords
		p.read(written, watch, resource)
		if most := base64.RawStdEncoding.DecodedLen(len(written)) / len(ownershipRecord{}); len(p.children) > most {
			t.Errorf("%d ownership records in %q", len(p.children), written)
		}
		again.read(p.text(watch, resource), watch, resource)
		if len(again.children) != len(p.children) || again.text(watch, resource) != p.text(watch, resource) {
			t.Errorf("%q became %q", p.text(watch, resource), again.text(watch, resource))
		}
	})
}

// FuzzOwners reads how an object names its owners. Nobody can name a CR of another namespace but by the
// annotations, which need an ownership record.
func FuzzOwners(f *testing.F) {
	f.Add(`{"namespace":"a","ownerReferences":[{"apiVersion":"g/v1","kind":"W","name":"n","uid":"u"}]}`)
	f.Add(`{"namespace":"a","annotations":{"operator-sdk/primary-resource":"b/n","operator-sdk/primary-resource-type":"W.g"}}`)
	f.Add(`{"ownerReferences":[{"apiVersion":"a/b/c"},{"name":"b/n","kind":"W.g"}],"annotations":{"operator-sdk/primary-resource":"/b/n","operator-sdk/primary-resource-type":"."}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var object metav1.ObjectMeta
		if json.Unmarshal([]byte(text), &object) != nil {
			return
		}
		found := namedOwners(&object)
		if most := 2*len(object.OwnerReferences) + 1; len(found) > most {
			t.Errorf("%d owners, and there may be %d", len(found), most)
		}
		for _, o := range found {
			if o.link == byReference && o.cr.Namespace != "" && needsOwnershipRecord(&object, o.cr) {
				t.Errorf("a reference names %v of another namespace", o.cr)
			}
			if o.link == byAnnotation && o.uid != "" {
				t.Errorf("an annotation names the UID %s", o.uid)
			}
		}
	})
}

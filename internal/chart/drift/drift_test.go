package drift

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/watches"
)

func TestParse(t *testing.T) {
	got, err := Parse("---\n# Source: a\nkind: A\nspec: {count: 1000000, f: 1.5}\n---\n\n---\nkind: B\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{{"kind": "A", "spec": map[string]any{"count": int64(1_000_000), "f": 1.5}}, {"kind": "B"}}
	if len(got) != len(want) {
		t.Fatalf("got %d objects", len(got))
	}
	for i := range want {
		if diff := cmp.Diff(want[i], got[i].Object); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if _, err := Parse("kind: A\n\tb: c"); err == nil {
		t.Error("what is no YAML was read")
	}
}

func TestListsAreTheirItems(t *testing.T) {
	got, err := Parse(`apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: A}
- {apiVersion: v1, kind: ConfigMapList, items: [{metadata: {name: b}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}]}
---
apiVersion: v1
kind: ConfigMapList
items: []
`)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, object := range got {
		all = append(all, object.GetAPIVersion()+" "+object.GetKind()+" "+object.GetName())
	}
	if diff := cmp.Diff([]string{"v1 A ", "v1 ConfigMap b", "v1 ConfigMap c"}, all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestIgnoredFieldsHaveTheirLiveValues(t *testing.T) {
	object := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "Deployment", "spec": spec}}
	}
	for why, test := range map[string]struct {
		ignore              []watches.DriftIgnore
		desired, live, want map[string]any
	}{
		"another value":            {[]watches.DriftIgnore{{Kind: "Deployment", Pointers: []string{"/spec/replicas"}}}, map[string]any{"replicas": int64(1), "a": "b"}, map[string]any{"replicas": int64(5), "a": "c"}, map[string]any{"replicas": int64(5), "a": "b"}},
		"none":                     {[]watches.DriftIgnore{{Kind: "Deployment", Pointers: []string{"/spec/replicas"}}}, map[string]any{"replicas": int64(1)}, map[string]any{}, map[string]any{}},
		"a slash in a name":        {[]watches.DriftIgnore{{Kind: "Deployment", Pointers: []string{"/spec/a~1b~0"}}}, map[string]any{"a/b~": "c"}, map[string]any{"a/b~": "d"}, map[string]any{"a/b~": "d"}},
		"but not of another kind":  {[]watches.DriftIgnore{{Kind: "StatefulSet", Pointers: []string{"/spec/replicas"}}}, map[string]any{"replicas": int64(1)}, map[string]any{"replicas": int64(5)}, map[string]any{"replicas": int64(1)}},
		"and not without pointers": {nil, map[string]any{"replicas": int64(1)}, map[string]any{"replicas": int64(5)}, map[string]any{"replicas": int64(1)}},
	} {
		t.Run(why, func(t *testing.T) {
			desired := object(test.desired)
			keepIgnored(desired, object(test.live), test.ignore)
			if diff := cmp.Diff(object(test.want).Object, desired.Object); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

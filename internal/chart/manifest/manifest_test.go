package manifest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/chart/manifest"
)

func TestParse(t *testing.T) {
	got, err := manifest.Parse("---\n# Source: a\nkind: A\nspec: {count: 1000000, f: 1.5}\n---\n\n---\nkind: ListOfAKind\nitems:\n- kind: B\n- kind: List\n  items: [{kind: C}]\n---\nkind: List\nitems: []\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{{"kind": "A", "spec": map[string]any{"count": int64(1_000_000), "f": 1.5}}, {"kind": "B"}, {"kind": "C"}}
	if len(got) != len(want) {
		t.Fatalf("got %d objects", len(got))
	}
	for i := range want {
		if diff := cmp.Diff(want[i], got[i].Object); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if _, err := manifest.Parse("kind: A\n\tb: c"); err == nil {
		t.Error("what is no YAML was read")
	}
}

func TestAManifestOfAliasesIsRefused(t *testing.T) {
	bomb := "a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a ,", 1000) + "]"
	if _, err := manifest.Parse("kind: A\n---\n" + bomb); err == nil {
		t.Error("it was read")
	}
}

func TestListsAreTheirItems(t *testing.T) {
	got, err := manifest.Parse(`apiVersion: v1
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

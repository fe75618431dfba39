package objects

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhatAnUpgradeWouldDo(t *testing.T) {
	document := func(name, fields string) string {
		return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n%s\n", name, fields)
	}
	other := configMap("other", "b")
	other.SetAnnotations(map[string]string{releaseName: "another", releaseNamespace: "ns"})
	kept := configMap("kept", "b")
	kept.SetAnnotations(map[string]string{KeepPolicy: "keep"})
	at := cluster(configMap("same", "b"), configMap("changed", "b"), configMap("gone", "b"), kept, other, configMap("refused", "b"))
	var applied []string
	refusals := map[string]error{
		"refused": apierrors.NewForbidden(schema.GroupResource{}, "refused", errors.New("a policy")),
		"inner":   apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "made"),
		"lost":    apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "lost"),
	}
	refusing(t, at, refusals, &applied)
	before := ""
	for _, name := range []string{"same", "changed", "gone", "kept", "other", "refused", "never"} {
		before += document(name, "data: {a: b}")
	}
	wanted := document("same", "data: {a: b}") + document("changed", "data: {a: c, drawn: %[1]s}") + document("new", "data: {a: b}") + document("refused", "data: {a: c}") +
		document("name-%[1]s", "data: {a: b}") + document("made", "") + document("thing", "") +
		"---\napiVersion: v1\nkind: Namespace\nmetadata: {name: made}\n" +
		strings.ReplaceAll(document("inner", ""), "name: inner", "name: inner, namespace: made") +
		strings.ReplaceAll(document("lost", ""), "name: lost", "name: lost, namespace: lost") +
		"---\napiVersion: a.example.com/v1\nkind: Thing\nmetadata: {name: thing}\n---\napiVersion: a.example.com/v1\nkind: Unknown\nmetadata: {name: thing}\n"
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things}\nspec: {group: a.example.com, names: {kind: Thing}}\n"
	d := &Detector{Cluster: at, Applier: Applier{Name: "r", Namespace: "ns"}}
	changes, err := d.Preview(t.Context(), crd, before, [2]string{fmt.Sprintf(wanted, "x"), fmt.Sprintf(wanted, "y")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		parts := []string{c.Kind, c.Name}
		for _, part := range []struct {
			has  bool
			word string
		}{
			{c.Former, "former"}, {c.Fields != nil, fmt.Sprint(c.Fields)},
			{c.Random != nil, fmt.Sprint("random ", c.Random)}, {c.Note != "", c.Note}, {c.Err != nil, "fails"},
		} {
			if part.has {
				parts = append(parts, part.word)
			}
		}
		got = append(got, strings.Join(parts, " "))
	}
	want := []string{
		"create CustomResourceDefinition things fails", // This API server does not serve them.
		"update ConfigMap ns/changed former [/data/a /data/drawn] random [/data/drawn]",
		"create ConfigMap ns/new",
		"update ConfigMap ns/refused former fails",
		"create ConfigMap ns/name-x random [/metadata/name]",
		"create ConfigMap ns/made", "create ConfigMap ns/thing", "create Namespace made",
		"create ConfigMap made/inner not tried: its namespace comes with the release",
		"create ConfigMap lost/lost fails",
		"create Thing thing not tried: its kind comes with the release",
		"create Unknown thing fails",
		"delete ConfigMap ns/gone former",
		"keep ConfigMap ns/kept former it has the annotation helm.sh/resource-policy: keep",
		"keep ConfigMap ns/other former it belongs to the release ns/another",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(applied) > 0 {
		t.Errorf("%q were applied", applied)
	}
}

func TestWhereTwoRenderingsDiffer(t *testing.T) {
	one := map[string]any{"a": "x", "b": []any{"1", "2"}, "c": map[string]any{"d/e": "1"}, "f": "same", "g": "gone", "h": []any{"1"}}
	other := map[string]any{"a": "y", "b": []any{"1", "3"}, "c": map[string]any{"d/e": "2"}, "f": "same", "h": []any{"1", "2"}}
	want := []string{"/a", "/b/1", "/c/d~1e", "/g", "/h"}
	if got := Differing(one, other, ""); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

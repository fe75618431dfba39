package watches

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestPathLookup(t *testing.T) {
	object := map[string]any{"spec": map[string]any{
		"secret": "one", "empty": "", "size": int64(3),
		"users":  []any{map[string]any{"name": "a"}, map[string]any{}, "no mapping", map[string]any{"name": "b"}},
		"names":  []any{"x", "", int64(1), "y"},
		"nested": []any{[]any{"p"}, []any{"q", "r"}},
	}}
	for why, test := range map[string]struct {
		path string
		want []string
	}{
		"a field":                           {"spec.secret", []string{"one"}},
		"an absent field":                   {"spec.other", nil},
		"a field below a text":              {"spec.secret.name", nil},
		"an empty text names nothing":       {"spec.empty", nil},
		"a number names nothing":            {"spec.size", nil},
		"a mapping names nothing":           {"spec", nil},
		"a list without its mark":           {"spec.names", nil},
		"all elements of a list":            {"spec.names[*]", []string{"x", "y"}},
		"a field of all elements of a list": {"spec.users[*].name", []string{"a", "b"}},
		"a list of lists":                   {"spec.nested[*][*]", []string{"p", "q", "r"}},
		"a mapping is not a list":           {"spec[*]", nil},
	} {
		t.Run(why, func(t *testing.T) {
			path := parsePath(test.path)
			if diff := cmp.Diff(test.want, path.Lookup(object)); diff != "" {
				t.Error(diff)
			}
			if got := path.String(); got != test.path {
				t.Errorf("got %q as text, want %q", got, test.path)
			}
		})
	}
}

func TestReferenceResolve(t *testing.T) {
	object := map[string]any{
		"metadata": map[string]any{"namespace": "own"},
		"spec": map[string]any{
			"secret": "s", "home": "far",
			"users": []any{
				map[string]any{"secret": "a"},
				map[string]any{"secret": "b", "namespace": "nb"},
				map[string]any{"namespace": "nc"},
			},
		},
	}
	for why, test := range map[string]struct {
		name, namespace string
		want            []types.NamespacedName
	}{
		"the CR's by default":                {"spec.secret", "", []types.NamespacedName{{Namespace: "own", Name: "s"}}},
		"another one":                        {"spec.secret", "spec.home", []types.NamespacedName{{Namespace: "far", Name: "s"}}},
		"the CR's where none is given":       {"spec.secret", "spec.gone", []types.NamespacedName{{Namespace: "own", Name: "s"}}},
		"that of the same element":           {"spec.users[*].secret", "spec.users[*].namespace", []types.NamespacedName{{Namespace: "own", Name: "a"}, {Namespace: "nb", Name: "b"}}},
		"one for all elements":               {"spec.users[*].secret", "spec.home", []types.NamespacedName{{Namespace: "far", Name: "a"}, {Namespace: "far", Name: "b"}}},
		"nothing is named":                   {"spec.gone", "spec.home", nil},
		"a namespace of the name's own path": {"spec.home", "spec.home", []types.NamespacedName{{Namespace: "far", Name: "far"}}},
	} {
		t.Run(why, func(t *testing.T) {
			reference := Reference{Name: parsePath(test.name)}
			if test.namespace != "" {
				reference.Namespace = parsePath(test.namespace)
			}
			if diff := cmp.Diff(test.want, reference.Resolve(object)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

package extravars

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestBuildLaterWins(t *testing.T) {
	cr := object(map[string]any{"fooBar": "spec", "watchVar": "spec", "finalVar": "spec"})
	o := options()
	o.Vars = map[string]any{"watch_var": "watch", "final_var": "watch", "ansible_connection": "local"}
	o.FinalizerVars = map[string]any{"final_var": "finalizer"}
	whole := map[string]any{
		"kind": "Widget", "spec": cr["spec"],
		"metadata": map[string]any{"name": "w", "namespace": "ns"},
	}
	for why, test := range map[string]struct {
		finalizing bool
		want       string
	}{
		"a run has the watch's vars only":            {finalizing: false, want: "watch"},
		"a finalizer's vars are the strongest of it": {finalizing: true, want: "finalizer"},
	} {
		t.Run(why, func(t *testing.T) {
			o.Finalizing = test.finalizing
			want := map[string]any{
				"foo_bar": "spec", "watch_var": "watch", "final_var": test.want, "ansible_connection": "local",
				"ansible_operator_meta":         map[string]any{"name": "w", "namespace": "ns"},
				"_my_group_example_widget":      whole,
				"_my_group_example_widget_spec": cr["spec"],
			}
			if diff := cmp.Diff(want, decoded(t, build(t, cr, o))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBuildNamesOfTheObject(t *testing.T) {
	for why, test := range map[string]struct {
		gvk  schema.GroupVersionKind
		want string
	}{
		"dots and dashes of the group are no part of a name": {schema.GroupVersionKind{Group: "My-group.Example", Kind: "Widget"}, "_my_group_example_widget"},
		"the core group is empty and keeps its place":        {schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "__secret"},
	} {
		t.Run(why, func(t *testing.T) {
			got := decoded(t, build(t, object(nil), Options{GVK: test.gvk}))
			for _, name := range []string{test.want, test.want + "_spec"} {
				if _, ok := got[name]; !ok {
					t.Errorf("no variable %q in %v", name, got)
				}
			}
		})
	}
}

func TestBuildSnakeCase(t *testing.T) {
	spec := map[string]any{
		"outerKey": []any{map[string]any{"innerKey": map[string]any{"deepKey": "aValue"}}, []any{map[string]any{"inList": true}}},
	}
	snake := map[string]any{
		"outer_key": []any{map[string]any{"inner_key": map[string]any{"deep_key": "aValue"}}, []any{map[string]any{"in_list": true}}},
	}
	for why, test := range map[string]struct {
		snakeCase bool
		want      map[string]any
	}{
		"every key at every depth is converted, values are not": {true, snake},
		"a watch may keep the keys as they are written":         {false, spec},
	} {
		t.Run(why, func(t *testing.T) {
			o := options()
			o.SnakeCase = test.snakeCase
			got := decoded(t, build(t, object(spec), o))
			for key, want := range test.want {
				if diff := cmp.Diff(want, got[key]); diff != "" {
					t.Error(diff)
				}
			}
			if diff := cmp.Diff(spec, got["_my_group_example_widget_spec"]); diff != "" {
				t.Errorf("the spec as written changed: %s", diff)
			}
		})
	}
}

func TestBuildWithoutASpec(t *testing.T) {
	for why, spec := range map[string]any{
		"a null spec is empty":   nil,
		"a text is not a map":    "text",
		"a list is not a map":    []any{"x"},
		"an empty spec is a map": map[string]any{},
	} {
		t.Run(why, func(t *testing.T) {
			got := decoded(t, build(t, map[string]any{"spec": spec}, options()))
			if diff := cmp.Diff(map[string]any{}, got["_my_group_example_widget_spec"]); diff != "" {
				t.Error(diff)
			}
			if len(got) != 3 {
				t.Errorf("variables beyond the operator's own: %v", got)
			}
		})
	}
	if got := decoded(t, build(t, nil, options())); len(got) != 3 {
		t.Errorf("an absent object gives %v", got)
	}
}

func TestBuildLeavesTheObjectAsItIs(t *testing.T) {
	cr, before := object(map[string]any{"aKey": []any{map[string]any{"bKey": "x"}}}), object(map[string]any{"aKey": []any{map[string]any{"bKey": "x"}}})
	cr["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{"manager": "kubectl"}}
	before["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{"manager": "kubectl"}}
	o := options()
	o.Vars = map[string]any{"a_key": "watch"}
	o.Finalizing, o.FinalizerVars = true, map[string]any{"b": "finalizer"}
	got := decoded(t, build(t, cr, o))
	if diff := cmp.Diff(before, cr); diff != "" {
		t.Errorf("the object changed: %s", diff)
	}
	if diff := cmp.Diff(map[string]any{"a_key": "watch"}, o.Vars); diff != "" {
		t.Errorf("the watch's vars changed: %s", diff)
	}
	whole := got["_my_group_example_widget"].(map[string]any)
	if diff := cmp.Diff(map[string]any{"name": "w", "namespace": "ns"}, whole["metadata"]); diff != "" {
		t.Errorf("managedFields must be left out: %s", diff)
	}
}

// object is a CR with the spec.
func object(spec map[string]any) map[string]any {
	return map[string]any{
		"kind":     "Widget",
		"metadata": map[string]any{"name": "w", "namespace": "ns"},
		"spec":     spec,
	}
}

func options() Options {
	return Options{
		GVK:        schema.GroupVersionKind{Group: "my-group.example", Version: "v1", Kind: "Widget"},
		SnakeCase:  true,
		MarkUnsafe: true,
	}
}

func build(t *testing.T, object map[string]any, o Options) Variables {
	t.Helper()
	vars, err := Build(object, o)
	if err != nil {
		t.Fatalf("Build: %v", err)
	}
	return vars
}

// decoded reads the encoding back without the marks.
func decoded(t *testing.T, vars Variables) map[string]any {
	t.Helper()
	text, err := vars.Encode()
	if err != nil {
		t.Fatalf("Encode: %v", err)
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("the encoding is not JSON: %v", err)
	}
	return unmarked(all).(map[string]any)
}

func unmarked(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if text, ok := v["__ansible_unsafe"]; ok && len(v) == 1 {
			return text
		}
		for key, value := range v {
			v[key] = unmarked(value)
		}
	case []any:
		for i, element := range v {
			v[i] = unmarked(element)
		}
	}
	return v
}

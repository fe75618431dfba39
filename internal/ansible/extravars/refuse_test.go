package extravars

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestBuildTreatsNamesAtTheTop(t *testing.T) {
	refused := []string{
		"ansibleConnection", "ansible_python_interpreter", "ansible_facts", "ansible_operator_meta", "_ansible_no_log",
		"__ansible_vault", "__ansibleType", "inventoryHostname", "inventory_hostname_short", "inventoryDir",
		"inventory_file", "groupNames", "omit", "-ansibleHost", " ansible_host", "ANSIBLE-HOST",
	}
	dropped := []string{
		"groups", "hostvars", "vars", "environment", "playbookDir", "playHosts",
		"roleName", "role_names", "rolePath", "role_uuid",
	}
	passed := []string{"name", "namespace", "port", "hosts", "tags", "lookup", "query", "now", "OMIT", "ansible", "sops_binary"}
	for _, key := range refused {
		if problems := problemsOf(t, object(map[string]any{key: "x"}), options()); len(problems) != 1 {
			t.Errorf("key %q must be refused, problems %q", key, problems)
		}
	}
	for _, key := range dropped {
		vars := build(t, object(map[string]any{key: "x"}), options())
		if diff := cmp.Diff([]string{"spec." + key}, vars.Dropped); diff != "" {
			t.Error(diff)
		}
		got := decoded(t, vars)
		if len(got) != 3 {
			t.Errorf("key %q must be dropped, variables %v", key, got)
		}
		if diff := cmp.Diff(map[string]any{key: "x"}, got["_my_group_example_widget_spec"]); diff != "" {
			t.Errorf("a dropped field must stay readable as written: %s", diff)
		}
	}
	for _, key := range passed {
		vars := build(t, object(map[string]any{key: "x"}), options())
		if got := decoded(t, vars); len(got) != 4 || vars.Dropped != nil {
			t.Errorf("key %q must pass, variables %v, dropped %q", key, got, vars.Dropped)
		}
	}
}

func TestBuildTreatsNamesAsTheyAreWithoutSnakeCase(t *testing.T) {
	o := options()
	o.SnakeCase = false
	spec := map[string]any{"ansible_host": 1, "ansibleHost": 2, "": 3, "fooBar": 4, "foo_bar": 5}
	want := []string{"spec.ansible_host", `spec[""]`}
	if diff := cmp.Diff(want, placesOf(problemsOf(t, object(spec), o))); diff != "" {
		t.Error(diff)
	}
}

func TestBuildRefusesSopsNamesWhereTheyAreRead(t *testing.T) {
	o := options()
	o.RefuseSops = true
	if problems := problemsOf(t, object(map[string]any{"sopsBinary": "/bin/sh"}), o); len(problems) != 1 {
		t.Errorf("problems %q", problems)
	}
}

// faulty returns an object with at least one problem of each kind.
func faulty() map[string]any {
	cr := object(map[string]any{
		"good": "x", "ansibleHost": "x", "omit": "x", "roleName": "dropped in any case",
		"fooBar": 1, "foo_bar": 2, "foo-bar": 3, "": "x",
		"nested":   map[string]any{"aKey": 1, "a_key": 2, " ": 3, "ok": "y"},
		"list":     []any{"a", math.NaN(), map[string]any{"__ansible_unsafe": "x", "__ansibleVault": "x", "k": 1}},
		"infinite": math.Inf(-1), "huge": json.Number("1e999"), "hex": json.Number("0x10"),
		"broken\xff": "x", "text": "\xff", "line\n": map[string]any{"": 1}, "odd": []string{"x"},
	})
	cr["status"] = map[string]any{"__ansible_unsafe": "x", "": "no name of a variable"}
	cr["__ansible_type"] = "x"
	return cr
}

func TestBuildReportsEverythingAtOnce(t *testing.T) {
	want := []string{
		"__ansible_type",
		"spec.ansibleHost",
		"spec.foo-bar and spec.fooBar and spec.foo_bar",
		"spec.hex",
		"spec.huge",
		"spec.infinite",
		"spec.list[1]",
		"spec.list[2].__ansibleVault",
		"spec.list[2].__ansible_unsafe",
		"spec.nested.aKey and spec.nested.a_key",
		`spec.nested[" "]`,
		"spec.odd",
		"spec.omit",
		"spec.text",
		`spec[""]`,
		`spec["broken\xff"]`,
		`spec["line\n"][""]`,
		"status.__ansible_unsafe",
	}
	for range 20 { // once for each of some orders that Go gives to a map
		problems := problemsOf(t, faulty(), options())
		if diff := cmp.Diff(want, placesOf(problems)); diff != "" {
			t.Fatal(diff)
		}
		if !slices.IsSorted(problems) {
			t.Error("the problems are not sorted")
		}
	}
}

func TestBuildNeverRefusesAFinalizersRun(t *testing.T) {
	o := options()
	o.Finalizing = true
	vars := build(t, faulty(), o)
	got := decoded(t, vars)
	spec := got["_my_group_example_widget_spec"]
	delete(got, "_my_group_example_widget_spec")
	whole := got["_my_group_example_widget"].(map[string]any)
	delete(got, "_my_group_example_widget")

	list := func(key string) []any { return []any{"a", nil, map[string]any{key: 1.0}} }
	want := map[string]any{
		"good": "x", "line\n": map[string]any{},
		"nested": map[string]any{"ok": "y"}, "list": list("k"),
		"ansible_operator_meta": map[string]any{"name": "w", "namespace": "ns"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	wantSpec := map[string]any{
		"good": "x", "ansibleHost": "x", "omit": "x", "roleName": "dropped in any case",
		"fooBar": 1.0, "foo_bar": 2.0, "foo-bar": 3.0, "line\n": map[string]any{},
		"nested": map[string]any{"aKey": 1.0, "a_key": 2.0, "ok": "y"},
		"list":   []any{"a", nil, map[string]any{"k": 1.0, "__ansibleVault": "x"}},
	}
	if diff := cmp.Diff(wantSpec, spec); diff != "" {
		t.Errorf("the spec as written: %s", diff)
	}
	if diff := cmp.Diff(map[string]any{"": "no name of a variable"}, whole["status"]); diff != "" {
		t.Error(diff)
	}
	for _, place := range []string{"spec.fooBar", "spec.foo_bar", "spec.roleName", "spec.ansibleHost", "spec.list[1]", "status.__ansible_unsafe"} {
		if !slices.Contains(vars.Dropped, place) {
			t.Errorf("%s is not among the dropped %q", place, vars.Dropped)
		}
	}
	if !slices.IsSorted(vars.Dropped) {
		t.Error("the dropped places are not sorted")
	}
}

func TestBuildDepth(t *testing.T) {
	for why, test := range map[string]struct {
		depth   int
		refused bool
	}{
		"the limit itself is allowed":                 {64, false},
		"one level more is not":                       {65, true},
		"what a careless generator writes":            {300, true},
		"depth must not cost a stack before it shows": {100_000, true},
	} {
		t.Run(why, func(t *testing.T) {
			// The spec itself is the first level.
			cr := object(map[string]any{"lists": nested(test.depth-1, true), "maps": nested(test.depth-1, false), "b": "x"})
			o := options()
			_, err := Build(cr, o)
			var invalid *InvalidSpecError
			if errors.As(err, &invalid) != test.refused {
				t.Fatalf("error %v", err)
			}
			if test.refused && len(invalid.Problems) != 2 {
				t.Errorf("problems %q", invalid.Problems)
			}
			o.Finalizing = true
			if got := decoded(t, build(t, cr, o)); got["b"] != "x" || got["lists"] == nil {
				t.Error("a finalizer's run does not have the rest of the spec")
			}
		})
	}
}

func nested(depth int, list bool) any {
	var v any = "leaf"
	for range depth {
		if list {
			v = []any{v}
		} else {
			v = map[string]any{"k": v}
		}
	}
	return v
}

func TestBuildSize(t *testing.T) {
	const around = len(`{"blob":"","small":"x"}`)
	for why, test := range map[string]struct {
		size    int
		refused bool
	}{
		"a mebibyte of JSON is allowed": {1 << 20, false},
		"one byte more is not":          {1<<20 + 1, true},
	} {
		t.Run(why, func(t *testing.T) {
			cr := object(map[string]any{"blob": strings.Repeat("b", test.size-around), "small": "x"})
			_, err := Build(cr, options())
			if errors.As(err, new(*InvalidSpecError)) != test.refused {
				t.Fatalf("error %v", err)
			}
			o := options()
			o.Finalizing = true
			got := decoded(t, build(t, cr, o))
			if _, kept := got["blob"]; kept == test.refused || got["small"] != "x" {
				t.Errorf("a finalizer's run has blob: %v, small: %v", kept, got["small"])
			}
		})
	}
}

func TestBuildOmitsNoMoreThanTheSizeNeeds(t *testing.T) {
	spec := map[string]any{}
	for i := range 8 {
		spec[fmt.Sprintf("f%d", i)] = strings.Repeat("x", 200_000+i)
	}
	o := options()
	o.Finalizing = true
	vars := build(t, object(spec), o)
	if diff := cmp.Diff([]string{"spec.f5", "spec.f6", "spec.f7"}, vars.Dropped); diff != "" {
		t.Error(diff)
	}
	if got := decoded(t, build(t, map[string]any{"spec": []any{strings.Repeat("x", 2<<20)}}, o)); len(got) != 3 {
		t.Errorf("a spec that is no map leaves %d variables", len(got))
	}
}

func TestMessagesAreBounded(t *testing.T) {
	spec, wide := map[string]any{}, strings.Repeat("ä", 5000)
	for i := range 5000 {
		spec[fmt.Sprintf("ansible_%s%04d", wide[:2*(i%300)], i)] = "x"
	}
	_, err := Build(object(spec), options())
	var invalid *InvalidSpecError
	if !errors.As(err, &invalid) {
		t.Fatalf("error %v", err)
	}
	if n := len(invalid.Problems); n != 101 || invalid.Problems[100] != "and 4900 more" {
		t.Errorf("%d problems, the last %q", n, invalid.Problems[n-1])
	}
	text := err.Error()
	if len(text) > 4<<10 || !utf8.ValidString(text) || !strings.Contains(text, " more") {
		t.Errorf("a message of %d bytes: %q", len(text), text)
	}
}

func problemsOf(t *testing.T, object map[string]any, o Options) []string {
	t.Helper()
	_, err := Build(object, o)
	var invalid *InvalidSpecError
	if err != nil && !errors.As(err, &invalid) {
		t.Fatalf("error %v is no InvalidSpecError", err)
	}
	if invalid == nil {
		return nil
	}
	return invalid.Problems
}

func placesOf(problems []string) []string {
	var places []string
	for _, problem := range problems {
		place, _, _ := strings.Cut(problem, ": ")
		places = append(places, place)
	}
	return places
}

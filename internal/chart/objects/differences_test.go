package objects

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/chart/manifest"
)

// read returns the object of a YAML text.
func readOne(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Parse(text)
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects: %v", len(objects), err)
	}
	return objects[0]
}

// applied returns an object in which Helm has the fields from an apply.
func applied(t *testing.T, text, set string) *unstructured.Unstructured {
	t.Helper()
	object := readOne(t, "apiVersion: v1\n"+text)
	if set == "" {
		return object
	}
	metadata, _ := object.Object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		object.Object["metadata"] = metadata
	}
	fields := readOne(t, set).Object
	metadata["managedFields"] = []any{
		map[string]any{"manager": "other", "operation": "Apply", "apiVersion": "v1", "fieldsV1": map[string]any{"f:others": map[string]any{}}},
		map[string]any{"manager": "helm", "operation": "Update", "apiVersion": "v1", "fieldsV1": map[string]any{"f:others": map[string]any{}}},
		map[string]any{"manager": "helm", "operation": "Apply", "apiVersion": "v1", "fieldsV1": fields},
	}
	return object
}

func TestDifferences(t *testing.T) {
	const (
		list = `f:l: {'k:{"name":"a"}': {.: {}, f:name: {}, f:v: {}}, 'k:{"name":"b"}': {.: {}, f:name: {}}}`
		port = `f:l: {'k:{"port":80,"protocol":"TCP"}': {.: {}, f:port: {}, f:v: {}}}`
	)
	for why, test := range map[string]struct {
		live, applied, set string
		want               []string
	}{
		"none":                                   {"d: {a: b}", "d: {a: b}", "f:d: {f:a: {}}", nil},
		"a value":                                {"d: {a: c}", "d: {a: b}", "f:d: {f:a: {}}", []string{"/d/a"}},
		"a field that was removed":               {"d: {}", "d: {a: b}", "f:d: {f:a: {}}", []string{"/d/a"}},
		"all that it stood in was removed":       {"e: f", "d: {a: b, c: d}", "f:d: {f:a: {}, f:c: {}}", []string{"/d"}},
		"a name with a slash":                    {"d: {a/b~c: x}", "d: {a/b~c: z}", "f:d: {'f:a/b~c': {}}", []string{"/d/a~1b~0c"}},
		"not what the chart says nothing of":     {"d: {a: b, x: 1}", "d: {a: b, x: 2}", "f:d: {f:a: {}}", nil},
		"not the status":                         {"status: {a: x}", "status: {a: z}", "f:status: {f:a: {}}", nil},
		"not null for nothing":                   {"d: {}", "d: {a: null}", "f:d: {f:a: {}}", nil},
		"a list as a whole":                      {"r: [a, x]", "r: [a]", "f:r: {}", []string{"/r"}},
		"an entry of a list":                     {"l: [{name: x}, {name: a, v: 1}, {name: b}]", "l: [{name: x}, {name: a, v: 2}, {name: b}]", list, []string{"/l/name=a/v"}},
		"not what others added to an entry":      {"l: [{name: a, v: 1, x: 1}, {name: b}]", "l: [{name: a, v: 1, x: 2}, {name: b}]", list, nil},
		"not entries of others, wherever":        {"l: [{name: x}, {name: a, v: 1}, {name: b}]", "l: [{name: a, v: 1}, {name: b}, {name: x}]", list, nil},
		"the order of the chart's entries":       {"l: [{name: b}, {name: a, v: 1}]", "l: [{name: a, v: 1}, {name: b}]", list, []string{"/l"}},
		"an entry that was removed":              {"l: [{name: a, v: 1}]", "l: [{name: a, v: 1}, {name: b}]", list, []string{"/l/name=b"}},
		"an entry without a name, by its index":  {"l: [{port: 1, protocol: TCP}, {port: 80, protocol: TCP, v: 1}]", "l: [{port: 1, protocol: TCP}, {port: 80, protocol: TCP, v: 2}]", port, []string{"/l/1/v"}},
		"one that was removed, by what it gets":  {"l: []", "l: [{port: 80, protocol: TCP, v: 2}]", port, []string{"/l/0"}},
		"an entry of a set":                      {"s: [a, x]", "s: [a, x, b]", `f:s: {'v:"a"': {}, 'v:"b"': {}}`, []string{"/s/2"}},
		"an entry that an index names":           {"s: [a, x]", "s: [a, z]", `f:s: {'i:1': {}}`, []string{"/s/1"}},
		"the text of a Secret in its data":       {"kind: Secret\ndata: {a: eA==}", "kind: Secret\ndata: {a: eQ==}", "f:stringData: {f:a: {}}", []string{"/data/a"}},
		"by the chart's text where nobody knows": {"kind: A\nd: {a: c, x: 1}\nr: [a]", "kind: A\nd: {a: b, x: 2}\nr: [a, b]", "", []string{"/d/a", "/r"}},
	} {
		t.Run(why, func(t *testing.T) {
			desired := readOne(t, "apiVersion: v1\nkind: A\nd: {a: b}\nr: [a, b]")
			got := differences(desired, applied(t, test.live, ""), applied(t, test.applied, test.set), false)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestAFieldThatTheChartHasDroppedDrifts(t *testing.T) {
	live, now := applied(t, "d: {a: b, old: c}", "f:d: {f:a: {}, f:old: {}}"), applied(t, "d: {a: b}", "f:d: {f:a: {}}")
	if got := differences(now, live, now, false); !slices.Equal(got, []string{"/d/old"}) {
		t.Errorf("got %q", got)
	}
}

func TestAnObjectThatHasDriftedNamesItsFields(t *testing.T) {
	for want, object := range map[string]Object{
		"A n (/a, /b)":  {Name: "A n", Fields: []string{"/a", "/b"}},
		"A n (missing)": {Name: "A n", Missing: true},
		"A n (/1, /2, /3, /4, /5, /6, /7, /8 and 1 more)": {Name: "A n", Fields: []string{"/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8", "/9"}},
	} {
		if object.String() != want {
			t.Errorf("got %q", object)
		}
	}
}

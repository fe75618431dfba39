package schema

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/author/source"
)

const definition = `versions:
  - name: v1
    schema:
      openAPIV3Schema: {type: object, properties: {
        spec: {type: object, properties: {
          name: {type: string},
          users: {type: array, items: {type: object, properties: {name: {type: string}, address: {type: string}}}},
          labels: {type: object, additionalProperties: {type: string}},
          byName: {type: object, additionalProperties: {type: object, properties: {size: {type: integer}}}},
          anything: {type: object, additionalProperties: true},
          half: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: object, properties: {a: {type: string}}}}},
          template: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}},
          closed: {type: object}}},
        status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`

func TestWhatASchemaDrops(t *testing.T) {
	v, err := (&CRD{versions: source.Field(node(t, definition), "versions")}).Validator("v1")
	if err != nil {
		t.Fatal(err)
	}
	for object, want := range map[string][]string{
		`{apiVersion: v1, kind: K, metadata: {name: a, odd: b}, spec: {name: a}}`:               nil,
		`{spec: {nam: a, more: {b: c}}, data: 1}`:                                               {"data", "spec.more", "spec.nam"},
		`{spec: {users: [{name: a}, {nam: b}, {name: c, x: 1}]}}`:                               {"spec.users[1].nam", "spec.users[2].x"},
		`{spec: {labels: {any: a}}}`:                                                            nil,
		`{spec: {byName: {a: {size: 1, colour: red}}}}`:                                         {"spec.byName.a.colour"},
		`{spec: {anything: {a: b}}}`:                                                            nil,
		`{spec: {anything: {a: {b: c}}}}`:                                                       {"spec.anything.a.b"}, // As the API server does.
		`{spec: {half: {unknown: 1, known: {a: b, c: d}}}}`:                                     {"spec.half.known.c"},
		`{spec: {template: {apiVersion: v1, kind: Pod, metadata: {}, spec: {a: b}, other: 1}}}`: {"spec.template.other", "spec.template.spec.a"},
		`{spec: {closed: {a: 1}}}`:                                                              {"spec.closed.a"},
		`{status: {any: {thing: [1]}}}`:                                                         nil,
	} {
		var value map[string]any
		if err := yaml.Unmarshal([]byte(object), &value); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, field := range v.Dropped(value) {
			got = append(got, field.Path)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", object, diff)
		}
	}
	want := []Problem{{"spec.users[0].addrss", "the CRD has no field spec.users[0].addrss; did you mean address?"}}
	if diff := cmp.Diff(want, v.Dropped(map[string]any{"spec": map[string]any{"users": []any{map[string]any{"addrss": 1}}}})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

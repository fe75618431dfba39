package scaffold

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
	kyaml "sigs.k8s.io/yaml"
)

func TestASchemaOfValuesBecomesADefinition(t *testing.T) {
	const open = "x-kubernetes-preserve-unknown-fields: true"
	for name, test := range map[string]struct{ schema, values, want, left string }{
		"what means the same": {
			`{type: object, additionalProperties: false, properties: {a: {type: string, pattern: x, minLength: 1, description: d, title: t, default: z}}}`, "",
			`{type: object, properties: {a: {type: string, pattern: x, minLength: 1, description: d}}}`, "",
		},
		"an object takes more unless it says no": {`{properties: {a: {type: integer}}}`, "", `{type: object, properties: {a: {type: integer}}, ` + open + `}`, ""},
		"a map":                                  {`{type: object, additionalProperties: {type: string}}`, "", `{type: object, additionalProperties: {type: string}}`, ""},
		"null beside a type":                     {`{type: object, properties: {a: {type: [string, "null"]}}}`, "", `{type: object, properties: {a: {type: string, nullable: true}}, ` + open + `}`, ""},
		"several types":                          {`{type: object, properties: {a: {type: [string, integer]}}}`, "", `{type: object, properties: {a: {` + open + `}}, ` + open + `}`, ""},
		"a list":                                 {`{type: object, properties: {a: {type: array, items: {type: boolean}}}}`, "", `{type: object, properties: {a: {type: array, items: {type: boolean}}}, ` + open + `}`, ""},
		"a list of anything":                     {`{type: object, properties: {a: {type: array}}}`, "", `{type: object, properties: {a: {type: array, items: {` + open + `}}}, ` + open + `}`, ""},
		"required but for what the chart has": {
			`{type: object, required: [a, b], properties: {a: {type: string}, b: {type: object, required: [c, d]}}}`, `{a: x, b: {c: 1}}`,
			`{type: object, properties: {a: {type: string}, b: {type: object, required: [d], ` + open + `}}, ` + open + `}`, "",
		},
		"required": {`{type: object, required: [a], properties: {a: {type: string}}}`, "", `{type: object, required: [a], properties: {a: {type: string}}, ` + open + `}`, ""},
		"a reference": {
			`{type: object, definitions: {num: {type: number}}, properties: {a: {$ref: "#/definitions/num"}}}`, "",
			`{type: object, properties: {a: {type: number}}, ` + open + `}`, "",
		},
		"a reference to elsewhere":    {`{type: object, properties: {a: {$ref: "https://x.example/y"}}}`, "", `{type: object, properties: {a: {` + open + `}}, ` + open + `}`, ""},
		"what can't be said is named": {`{type: object, properties: {a: {type: string, format: uri, oneOf: [{}]}}}`, "", `{type: object, properties: {a: {type: string}}, ` + open + `}`, "format, oneOf"},
		"anything":                    {`{}`, "", `{` + open + `}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var root, values, want object
			for into, text := range map[*object]string{&root: test.schema, &want: test.want, &values: test.values} {
				if err := kyaml.Unmarshal([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			s := structural{root: root, left: map[string]bool{}}
			if diff := cmp.Diff(want, s.convert(root, values, 0)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !strings.Contains(s.note(), test.left) || (s.note() == "") != (test.left == "") {
				t.Errorf("want a note with %q, got %q", test.left, s.note())
			}
		})
	}
}

func TestASchemaThatContainsItselfEnds(t *testing.T) {
	s := structural{root: object{"type": "object", "properties": object{"a": object{"$ref": "#"}}}, left: map[string]bool{}}
	schema, depth := s.convert(s.root, nil, 0), 0
	for schema["properties"] != nil {
		schema = schema["properties"].(object)["a"].(object)
		depth++
	}
	if depth < 3 || schema[anything] != true {
		t.Errorf("after %d levels: %v", depth, schema)
	}
	s.root = object{"$ref": "#"}
	if got := s.convert(s.root, nil, 0); got[anything] != true {
		t.Errorf("a reference to itself is %v", got)
	}
}

func TestValuesBecomeADefinition(t *testing.T) {
	const values = `
# Default values. Not about the next one.

# -- How many
# replicas.
replicas: 1
ratio: 0.5
enabled: true # A word behind.
image: {repository: x, tag: ""}
nothing:
labels: {}
hosts: [{host: a}]
`
	const open = "x-kubernetes-preserve-unknown-fields: true"
	var document yaml.Node
	var want object
	if err := yaml.Unmarshal([]byte(values), &document); err != nil {
		t.Fatal(err)
	}
	err := kyaml.Unmarshal([]byte(`{type: object, `+open+`, properties: {
		replicas: {type: integer, description: How many replicas.}, ratio: {type: number}, enabled: {type: boolean},
		image: {type: object, `+open+`, properties: {repository: {type: string}, tag: {type: string}}},
		nothing: {`+open+`}, labels: {type: object, `+open+`}, hosts: {type: array, items: {`+open+`}}}}`), &want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, fromValues(document.Content[0])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

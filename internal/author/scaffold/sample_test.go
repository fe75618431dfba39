package scaffold

import (
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
	kyaml "sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// TestValuesAreWrittenAsKubernetesReadsThem: two readers of YAML differ on yes, 0755 and 0o17.
func TestValuesAreWrittenAsKubernetesReadsThem(t *testing.T) {
	for text, want := range map[string]string{
		"a: yes # why":         "a: true # why",
		"a: off":               "a: false",
		"yes: 1":               `"true": 1`,
		"a: 0755":              "a: 493",
		"a: 0o17":              "a: 15",
		"a: 1_000":             "a: 1000",
		"a: 1.10":              "a: 1.10",
		`a: "yes"`:             `a: "yes"`,
		"a: 2001-01-01":        `a: "2001-01-01"`,
		"a: ~":                 "a: ~",
		"a: text":              "a: text",
		"a: &x {b: c}\nd: *x":  "a: &x {b: c}\nd: *x",
		"a: [yes, on, 3, 0x1]": "a: [true, true, 3, 1]",
	} {
		var document yaml.Node
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		asKubernetesReads(document.Content[0])
		got, err := yamlText(document.Content[0])
		if err != nil || strings.TrimSpace(got) != want {
			t.Errorf("%s: want %s, got %s, %v", text, want, got, err)
		}
	}
}

func TestASampleHasWhatTheSchemaRequires(t *testing.T) {
	const schema = `{type: object, required: [host, size, mode, "on", list, db], properties: {
		host: {type: string}, size: {type: integer, minimum: 3}, mode: {type: string, enum: ["yes"]}, "on": {type: boolean}, list: {type: array},
		db: {type: object, required: [name], properties: {name: {type: string}}},
		there: {type: object, required: [port], properties: {port: {type: integer}}}}}`
	const want = `there:
  # Why.
  x: 1
  port: 1
host: change-me
size: 3
mode: "yes"
"on": true
list: []
db:
  name: change-me
`
	var root object
	if err := kyaml.Unmarshal([]byte(schema), &root); err != nil {
		t.Fatal(err)
	}
	var k Kind
	if err := k.sampleOf([]byte("there:\n  # Why. \n  x: 1\n"), root); err != nil || k.SampleSpec != want {
		t.Errorf("want\n%s\ngot\n%s\n%v", want, k.SampleSpec, err)
	}
	if err := (&Kind{}).sampleOf(nil, object{}); err != nil {
		t.Error(err)
	}
}

// TestAnOptionWithAReservedNameIsNoted: ansible-lint would refuse the project's role.
func TestAnOptionWithAReservedNameIsNoted(t *testing.T) {
	dir := newProject(t)
	k := cluster()
	plan, err := CreateAPI(dir, k)
	written(t, plan, err)
	specs := "argument_specs:\n  main:\n    options:\n      port:\n        type: int\n        default: 1\n      service_port:\n        type: int\n        default: 1\n"
	scratch.Write(t, dir, map[string]string{"roles/mysqlcluster/meta/argument_specs.yml": specs})
	k.GenerateRole, k.DefinitionOnly = false, true
	plan, err = CreateAPI(dir, k)
	written(t, plan, err)
	notes := strings.Join(plan.Notes, "\n")
	if strings.Count(notes, "Ansible or Python reserves") != 1 || !strings.Contains(notes, "roles/mysqlcluster/meta/argument_specs.yml:4: Ansible or Python reserves the name port,") {
		t.Errorf("got the notes %q", notes)
	}
}

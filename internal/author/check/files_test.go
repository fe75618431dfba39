package check

import (
	"testing"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
	"github.com/ensign-operator/ensign/internal/author/source"
)

func TestFilesThatAreNotThere(t *testing.T) {
	const tasks = "roles/r/tasks/main.yml"
	for name, test := range map[string]struct {
		task string
		line int // of a finding
	}{
		"a template":                        {"- template:\n    src: there.j2\n", 0},
		"a template with a slip":            {"- template:\n    src: three.j2\n", 2},
		"of the module k8s":                 {"- kubernetes.core.k8s:\n    template: three.j2\n", 2},
		"of the module k8s, with options":   {"- kubernetes.core.k8s:\n    template:\n      path: three.j2\n", 3},
		"a file of definitions":             {"- kubernetes.core.k8s:\n    src: there.txt\n", 0},
		"a file of definitions with a slip": {"- kubernetes.core.k8s:\n    src: three.txt\n", 2},
		"definitions of a server":           {"- kubernetes.core.k8s:\n    src: https://example.com/three.yml\n", 0},
		"one that a task has put there":     {"- kubernetes.core.k8s:\n    src: '{{ dir }}/there.txt'\n", 0},
		"a file":                            {"- copy:\n    src: there.txt\n", 0},
		"a directory":                       {"- copy:\n    src: deep/\n", 0},
		"a file with a slip":                {"- copy:\n    src: three.txt\n", 2},
		"a file of the other machine":       {"- copy:\n    src: three.txt\n    remote_src: true\n", 0},
		"a file of the image":               {"- copy:\n    src: /etc/three.txt\n", 0},
		"what a run knows":                  {"- template:\n    src: '{{ x }}.j2'\n", 0},
		"a file of the role that calls":     {"- include_role: {name: other}\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := project(t, thing(), map[string]string{
				tasks: test.task, "roles/r/templates/there.j2": "", "roles/r/files/there.txt": "", "roles/r/files/deep/x": "", "roles/other/tasks/main.yml": "- copy: {src: there.txt}\n",
			})
			p.missingFiles(p.Units[0])
			if test.line == 0 {
				want(t, p)
			} else {
				want(t, p, tasks+":"+string(rune('0'+test.line))+" warning missing-file")
			}
		})
	}
}

func TestFilesThatLookupsName(t *testing.T) {
	literal := func(name string) []reader.Value { return []reader.Value{{IsLiteral: true, Literal: name}} }
	p := project(t, thing(), map[string]string{"roles/r/tasks/main.yml": "- debug: {msg: '{{ it }}'}\n", "roles/r/files/there.txt": "", "roles/r/templates/there.j2": ""})
	p.Units[0].Texts[0].Analysis.Lookups = []reader.Lookup{
		{Line: 1, Plugin: "file", Terms: literal("there.txt")}, {Line: 1, Plugin: "ansible.builtin.template", Terms: literal("there.j2")},
		{Line: 1, Plugin: "file", Terms: literal("{{ x }}.txt")}, {Line: 1, Plugin: "env", Terms: literal("three.txt")},
		{Line: 1, Plugin: "file", Terms: literal("three.txt"), Options: map[string]reader.Value{"errors": {}}},
	}
	p.missingFiles(p.Units[0])
	want(t, p)
	p.Units[0].Texts[0].Analysis.Lookups[0].Terms = literal("three.txt")
	p.missingFiles(p.Units[0])
	want(t, p, "roles/r/tasks/main.yml:1 warning missing-file")
}

func TestFieldsThatTheSchemaDoesNotHave(t *testing.T) {
	for name, test := range map[string]struct {
		flow reader.Flow
		want bool
	}{
		"a field of elements":         {reader.Flow{Name: "users", Path: []string{"[]", "secret"}}, false},
		"a slip":                      {reader.Flow{Name: "users", Path: []string{"[]", "scret"}}, true},
		"of the first element":        {reader.Flow{Name: "users", Path: []string{"0", "scret"}}, true},
		"behind a default":            {reader.Flow{Name: "users", Path: []string{"[]", "scret"}, Filters: []string{"default"}}, true},
		"behind another shape":        {reader.Flow{Name: "users", Path: []string{"[]", "key"}, Filters: []string{"dict2items"}}, false},
		"of the whole object":         {reader.Flow{Name: "_example_com_thing", Path: []string{"spec", "secretNmae"}}, true},
		"its metadata":                {reader.Flow{Name: "_example_com_thing", Path: []string{"metadata", "anything"}}, false},
		"of the whole spec":           {reader.Flow{Name: "_example_com_thing_spec", Path: []string{"secretName"}}, false},
		"of a text":                   {reader.Flow{Name: "secret_name", Path: []string{"upper"}}, false},
		"of a variable of the role's": {reader.Flow{Name: "other", Path: []string{"anything"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := project(t, thing(), map[string]string{"roles/r/tasks/main.yml": "- debug: {msg: '{{ it }}'}\n", "config/crd.yaml": definition + closed})
			u := p.Units[0]
			u.FromCR = func(name string, _ []*source.Definition) bool { return u.Variables.Has(name) }
			test.flow.Lookup = -1
			u.Texts[0].Analysis = reader.Analysis{Outputs: []reader.Output{{Line: 1, Flows: []reader.Flow{test.flow}}}}
			p.unknownFields(u)
			if test.want {
				want(t, p, "roles/r/tasks/main.yml:1 warning undefined-variable")
			} else {
				want(t, p)
			}
		})
	}
}

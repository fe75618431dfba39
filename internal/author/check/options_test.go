package check

import (
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
)

func TestOptionsOfModules(t *testing.T) {
	known := reader.Options{
		"definition": {Type: "raw", Aliases: []string{"inline"}}, "state": {Type: "str", Choices: []string{"present", "absent"}}, "wait": {Type: "bool"},
		"timeout": {Type: "int"}, "name": {Type: "str", Required: true, Aliases: []string{"title"}}, "force": {Type: "str", Choices: []string{"True", "False", "ask"}},
		"newline":   {Type: "str", Choices: []string{`\n`, `\r\n`}},
		"condition": {Type: "dict", Options: reader.Options{"type": {Type: "str", Required: true}, "status": {Type: "str"}}},
		"items":     {Type: "list", Options: reader.Options{"path": {Type: "str"}}},
	}
	for name, test := range map[string]struct {
		arguments string
		want      string // a part of the only message; "" for none
		line      int    // of a finding, below the module
	}{
		"all is well":                        {"title: a\n    state: absent\n    wait: yes\n    timeout: '5'\n    condition: {type: x}\n    items: [{path: x}]", "", 0},
		"an alias":                           {"name: a\n    inline: {anything: 1}", "", 0},
		"a slip":                             {"name: a\n    definitoin: {}", "did you mean definition?", 3},
		"a slip in an alias":                 {"name: a\n    inlin: {}", "did you mean inline?", 3},
		"what there is not":                  {"name: a\n    colour: red", "has no option colour", 3},
		"within a mapping":                   {"name: a\n    condition: {type: x, statsu: x}", "has no option condition.statsu; did you mean status?", 3},
		"within elements":                    {"name: a\n    items:\n      - {paht: x}", "items[].paht", 4},
		"a value that it can't have":         {"name: a\n    state: presnet", "did you mean present?", 3},
		"a value that a run knows":           {"name: a\n    state: '{{ x }}'\n    wait: '{{ y }}'", "", 0},
		"a boolean as Ansible writes them":   {"name: a\n    force: true", "", 0},
		"a line break":                       {"name: a\n    newline: \"\\r\\n\"", "", 0},
		"a line break by a backslash":        {"name: a\n    newline: '\\n'", "", 0},
		"another line break":                 {"name: a\n    newline: \"\\r\"", "it is one of", 3},
		"no boolean":                         {"name: a\n    wait: ture", "its type is bool", 3},
		"no number":                          {"name: a\n    timeout: 5m", "its type is int", 3},
		"one is missing":                     {"state: present", "requires the option name", 1},
		"one is missing within a mapping":    {"name: a\n    condition: {status: x}", "requires the option condition.type", 3},
		"an anchor may have what is missing": {"<<: {name: a}\n    state: present", "", 0},
		"what nobody knows":                  {"'{{ x }}': a", "", 0},
	} {
		for fqcn, severity := range map[string]string{"kubernetes.core.k8s": "error", "some.other.module": "warning"} {
			t.Run(name+" of "+fqcn, func(t *testing.T) {
				p := project(t, thing(), map[string]string{"roles/r/tasks/main.yml": "- " + fqcn + ":\n    " + test.arguments + "\n"})
				p.moduleOptions(p.Units[0], p.Units[0].Tasks[0], reader.Plugin{FQCN: fqcn, Options: known})
				switch {
				case test.want == "":
					want(t, p)
				case len(p.findings) != 1 || p.findings[0].Line != test.line || string(p.findings[0].Severity) != severity || !strings.Contains(p.findings[0].Message, test.want):
					t.Errorf("want %s %q in line %d, got %+v", severity, test.want, test.line, p.findings)
				}
			})
		}
	}
}

func TestDefaultsOfModulesMayGiveOptions(t *testing.T) {
	p := project(t, thing(), map[string]string{"roles/r/tasks/main.yml": "- block: [{m.m.m: {a: 1}}]\n  module_defaults: {m.m.m: {b: 1}}\n"})
	p.moduleOptions(p.Units[0], p.Units[0].Tasks[1], reader.Plugin{Options: reader.Options{"a": {}, "b": {Required: true}}})
	want(t, p)
}

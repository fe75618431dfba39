package check

import (
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
	"github.com/ensign-operator/ensign/internal/watches"
)

func TestVariablesThatNothingDefines(t *testing.T) {
	const tasks, open = "roles/r/tasks/main.yml", "              x-kubernetes-preserve-unknown-fields: true\n"
	for name, test := range map[string]struct {
		reads   string
		more    string // tasks before the one that reads it
		schema  string
		guarded bool
		want    string // the name that was meant, "-" where none is near, "" for no finding
	}{
		"a field":                                 {reads: "secret_name"},
		"a slip in a field's name":                {reads: "secret_naem", want: "secret_name"},
		"a slip that has a default":               {reads: "secret_naem", guarded: true, want: "secret_name"},
		"a field in camel case":                   {reads: "secretName", want: "secret_name"},
		"a name near to nothing":                  {reads: "domain", want: "-"},
		"which has a default":                     {reads: "domain", guarded: true},
		"which an open schema may have":           {reads: "domain", schema: open},
		"a slip in a default":                     {reads: "r_timeuot", schema: open, want: "r_timeout"},
		"a list, beside one of its elements":      {reads: "r_facts", more: "- set_fact: {r_fact: 1}\n", schema: open},
		"a slip in an argument":                   {reads: "r_argumnt", schema: open, want: "r_argument"},
		"what a task registers":                   {reads: "r_result", more: "- debug:\n  register: r_result\n"},
		"what set_fact sets":                      {reads: "r_fact", more: "- set_fact: {r_fact: 1}\n"},
		"what counts a loop":                      {reads: "r_index", more: "- debug:\n  loop: [1]\n  loop_control: {index_var: r_index, loop_var: r_one}\n"},
		"the loop's own variable":                 {reads: "r_one", more: "- debug:\n  loop: [1]\n  loop_control: {loop_var: r_one}\n"},
		"a variable of a block":                   {reads: "r_block", more: "- block: [{debug: }]\n  vars: {r_block: 1}\n"},
		"a variable of an included role":          {reads: "r_given", more: "- include_role: {name: r}\n  vars: {r_given: 1}\n"},
		"a variable of a host that a task adds":   {reads: "r_host", more: "- add_host: {name: x, r_host: 1}\n"},
		"a variable of the group":                 {reads: "r_group"},
		"what the watch sets":                     {reads: "r_watch"},
		"what the finalizer sets":                 {reads: "r_final"},
		"what another unit defines":               {reads: "r_elsewhere"},
		"a fact":                                  {reads: "services", more: "- set_fact: {service: 1}\n"},
		"what Ansible sets":                       {reads: "ansible_facts"},
		"what Jinja has":                          {reads: "namespace"},
		"the whole object":                        {reads: "_example_com_thing_spec"},
		"what a file may define that a run knows": {reads: "domain", more: "- include_vars: '{{ x | default(1) }}.yml'\n"},
		"what a module may return":                {reads: "domain", more: "- some.thing.net_facts:\n"},
		"the resource, as it was called once":     {reads: "meta", want: "ansible_operator_meta"},
		"a number more is another name":           {reads: "port2", more: "- set_fact: {port1: 1}\n", want: "-"},
	} {
		t.Run(name, func(t *testing.T) {
			watch := thing()
			watch.Vars = map[string]any{"r_watch": 1}
			watch.Finalizer = &watches.Finalizer{Vars: map[string]any{"r_final": 1}, Content: watches.Content{Role: "bye"}}
			if test.schema == "" {
				test.schema = closed
			}
			p := project(t, watch, map[string]string{
				tasks: test.more + "- debug:\n    msg: '{{ it }}'\n", "config/crd.yaml": definition + test.schema, "roles/r/defaults/main.yml": "r_timeout: 1\n",
				"roles/r/meta/argument_specs.yml": "argument_specs: {main: {options: {r_argument: {type: str}}}}\n",
				"roles/group_vars/all.yml":        "r_group: 1\n", "roles/bye/tasks/main.yml": "- set_fact: {r_elsewhere: 1}\n",
			})
			for _, text := range p.Units[0].Texts {
				if text.Value == "{{ it }}" {
					text.Analysis = reader.Analysis{Names: []reader.Named{{Name: test.reads, Line: 1}}}
					if test.guarded {
						text.Analysis.Guarded = []string{test.reads}
					}
				}
			}
			p.undefined(p.Units[0])
			line := strings.Count(test.more, "\n") + 2
			switch {
			case test.want == "":
				want(t, p)
			case len(p.findings) != 1 || p.findings[0].ID != "undefined-variable" || p.findings[0].Line != line:
				t.Errorf("want one finding at line %d, got %+v", line, p.findings)
			case strings.Contains(p.findings[0].Message, "did you mean") != (test.want != "-"),
				test.want != "-" && !strings.Contains(p.findings[0].Message, "did you mean "+test.want+"?"):
				t.Errorf("want %q, got %q", test.want, p.findings[0].Message)
			}
		})
	}
}

package source

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/watches"
)

// walked is the unit of the role r, whose files are given.
func walked(t *testing.T, all map[string]string) (*Unit, string) {
	t.Helper()
	dir := files(t, all)
	units := Walk([]watches.Watch{{Content: watches.Content{Role: "r"}}}, Search{Dir: dir})
	if len(units) != 1 {
		t.Fatalf("got %d units", len(units))
	}
	return units[0], dir
}

// names are the tasks in the order of the walk.
func names(u *Unit) string {
	all := make([]string, len(u.Tasks))
	for i, task := range u.Tasks {
		all[i] = task.Name
	}
	return strings.Join(all, " ")
}

func TestWhatIsWalked(t *testing.T) {
	const one = "- {name: one, debug: }\n"
	for name, test := range map[string]struct {
		main             string
		tasks            string
		missing, unknown int // lines; 0 is none
	}{
		"a file":                           {"- {name: in, include_tasks: one.yml}\n", "in one", 0, 0},
		"a file by its argument":           {"- {name: in, ansible.builtin.import_tasks: {file: one.yml}}\n", "in one", 0, 0},
		"each file once, also in a circle": {"- {name: in, include_tasks: circle.yml}\n- {name: too, include_tasks: circle.yml}\n", "in again too", 0, 0},
		"the files of a loop":              {"- {name: in, include_tasks: '{{ item }}.yml', loop: [one, two]}\n", "in one two", 0, 0},
		"files of mappings in a loop":      {"- name: in\n  include_tasks: '{{ f.file }}'\n  loop: [{file: one.yml}, {other: two.yml}]\n  loop_control: {loop_var: f}\n", "in one", 0, 0},
		"files that the name may mean":     {"- {name: in, include_tasks: 'os-{{ family }}.yml'}\n", "in debian suse", 0, 0},
		"a name that may be anything":      {"- {name: in, include_tasks: '{{ x }}'}\n", "in again one debian suse two", 0, 0},
		"a name that leads nowhere":        {"- debug:\n- {name: in, include_tasks: 'no-{{ x }}.yml'}\n", " in", 0, 2},
		"a file that is not there":         {"- {name: in, include_tasks: none.yml}\n", "in", 1, 0},
		"Ansible tells of imports":         {"- {name: in, import_tasks: none.yml}\n", "in", 0, 0},
		"a role":                           {"- {name: in, include_role: {name: other}}\n", "in other", 0, 0},
		"a part of a role":                 {"- {name: in, include_role: {name: other, tasks_from: part.yml}}\n", "in part", 0, 0},
		"a role that is not there":         {"- name: in\n  include_role:\n    name: none\n", "in", 2, 0},
		"a role that only a run knows":     {"- {name: in, include_role: {name: 'none-{{ x }}'}}\n", "in", 0, 1},
		"blocks":                           {"- {name: b, block: [{name: x, debug: }], rescue: [{name: y, debug: }], always: [{name: z, debug: }]}\n", "b x y z", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			u, dir := walked(t, map[string]string{
				"roles/r/tasks/main.yml": test.main, "roles/r/tasks/one.yml": one, "roles/r/tasks/two.yml": "- {name: two, debug: }\n",
				"roles/r/tasks/circle.yml": "- {name: again, include_tasks: circle.yml}\n", "roles/r/tasks/os-debian.yml": "- {name: debian, debug: }\n",
				"roles/r/tasks/os-suse.yml": "- {name: suse, debug: }\n", "roles/other/tasks/main.yml": "- {name: other, debug: }\n", "roles/other/tasks/part.yml": "- {name: part, debug: }\n",
			})
			if got := names(u); got != test.tasks {
				t.Errorf("want the tasks %q, got %q", test.tasks, got)
			}
			main := filepath.Join(dir, "roles/r/tasks/main.yml")
			for what, want := range map[*[]Fault]int{&u.Missing: test.missing, &u.Unknown: test.unknown} {
				if len(*what) != min(want, 1) || want > 0 && ((*what)[0].File != main || (*what)[0].Line != want) {
					t.Errorf("want a fault on line %d, got %v", want, *what)
				}
			}
		})
	}
}

func TestWhatANameWithVariablesMayMean(t *testing.T) {
	for name, test := range map[string]struct {
		main  string
		tasks string
		note  string // "" for none
	}{
		"files by a pattern":                    {"- {name: in, include_tasks: 'on-{{ x }}.yml'}\n", "in a b", "roles/r/tasks/on-a.yml, roles/r/tasks/on-b.yml"},
		"a variable of the role":                {"- {name: in, include_tasks: 'on-{{ fixed }}.yml'}\n", "in a", ""},
		"a part of it":                          {"- {name: in, include_tasks: \"on-{{ deep['name'] }}.yml\"}\n", "in b", ""},
		"a default, which a resource may set":   {"- {name: in, include_tasks: '{{ usual }}'}\n", "in a b", "roles/r/tasks/on-a.yml, roles/r/tasks/on-b.yml"},
		"a loop over a list that is a variable": {"- {name: in, include_tasks: 'on-{{ item }}.yml', loop: '{{ both }}'}\n", "in a b", ""},
		"a variable of the include":             {"- {name: in, include_tasks: sub/more.yml, vars: {y: a}}\n- {name: too, include_tasks: sub/more.yml, vars: {y: b}}\n", "in more too a b", ""},
		"a result":                              {"- {name: do, command: x, register: r}\n- {name: in, include_tasks: 'on-{{ r.stdout }}.yml'}\n", "do in a b", "roles/r/tasks/on-a.yml, roles/r/tasks/on-b.yml"},
		"one of two texts":                      {"- {name: in, include_tasks: \"{{ 'on-a' if x else 'on-b' }}.yml\"}\n", "in a b", ""},
		"a fact that is one of two":             {"- {name: set, set_fact: {f: \"{{ x | ternary('a', 'b') }}\"}}\n- {name: in, include_tasks: 'on-{{ f }}.yml'}\n", "set in a b", ""},
		"a default of its own":                  {"- {name: in, include_tasks: \"{{ x | default('on-b.yml') }}\"}\n", "in b a", "roles/r/tasks/on-a.yml, roles/r/tasks/on-b.yml"},
		"the role's own directory":              {"- {name: in, include_tasks: '{{ role_path }}/tasks/on-a.yml'}\n", "in a", ""},
		"roles by a pattern":                    {"- {name: in, include_role: {name: 'kind_{{ x }}'}}\n", "in one two", "roles/kind_one, roles/kind_two"},
		"roles of a loop":                       {"- {name: in, include_role: {name: '{{ item.role }}'}, loop: [{role: kind_two}]}\n", "in two", ""},
		"a role that may be any":                {"- {name: in, include_role: {name: '{{ x }}'}}\n", "in one two", "roles/kind_one, roles/kind_two"},
		"a part of a role":                      {"- {name: in, include_role: {name: kind_one, tasks_from: '{{ x }}'}}\n", "in one part", "roles/kind_one/tasks/main.yml, roles/kind_one/tasks/part.yml"},
		"parts of a loop":                       {"- {name: in, include_role: {name: kind_one, tasks_from: '{{ item }}.yml'}, loop: [part]}\n", "in part", ""},
	} {
		t.Run(name, func(t *testing.T) {
			u, dir := walked(t, map[string]string{
				"roles/r/tasks/main.yml": test.main, "roles/r/tasks/on-a.yml": "- {name: a, debug: }\n", "roles/r/tasks/on-b.yml": "- {name: b, debug: }\n",
				"roles/r/tasks/sub/more.yml": "- {name: more, include_tasks: 'on-{{ y }}.yml'}\n", "roles/r/vars/main.yml": "fixed: a\ndeep: {name: b}\nboth: [a, b]\n",
				"roles/r/defaults/main.yml": "usual: on-a.yml\n", "roles/kind_one/tasks/main.yml": "- {name: one, debug: }\n", "roles/kind_one/tasks/part.yml": "- {name: part, debug: }\n",
				"roles/kind_two/tasks/main.yml": "- {name: two, debug: }\n",
			})
			if got := names(u); got != test.tasks {
				t.Errorf("want the tasks %q, got %q", test.tasks, got)
			}
			if len(u.Missing)+len(u.Unknown) > 0 || len(u.Guessed) != min(len(test.note), 1) {
				t.Fatalf("got missing %v, unknown %v, guessed %v", u.Missing, u.Unknown, u.Guessed)
			}
			for _, f := range u.Guessed {
				if !strings.HasSuffix(f.Message, ": "+test.note) || f.File != filepath.Join(dir, "roles/r/tasks/main.yml") {
					t.Errorf("got %v", f)
				}
			}
		})
	}
}

func TestARoleHasTheCollectionsOfItsMetaEachTime(t *testing.T) {
	u, _ := walked(t, map[string]string{
		"roles/r/tasks/main.yml":     "- include_role: {name: other, tasks_from: a}\n- include_role: {name: other, tasks_from: b}\n",
		"roles/other/meta/main.yml":  "collections: [kubernetes.core]\n",
		"roles/other/tasks/a.yml":    "- k8s_info: {kind: Pod}\n",
		"roles/other/tasks/b.yml":    "- k8s_exec: {pod: x}\n",
		"roles/other/tasks/main.yml": "- fail: {msg: x}\n",
	})
	for _, task := range u.Tasks[1:] {
		if wanted := []string{"kubernetes.core"}; task.Module != "include_role" && !slices.Equal(task.Collections, wanted) {
			t.Errorf("%s has the collections %v", task.Module, task.Collections)
		}
	}
}

func TestPartsOfARole(t *testing.T) {
	u, dir := walked(t, map[string]string{
		"roles/r/meta/main.yml": "dependencies: [base, {role: more, vars: {a: 1}}, none]\n", "roles/r/handlers/main.yml": "- {name: restart, debug: }\n",
		"roles/r/tasks/main.yml": "- {name: task, debug: }\n", "roles/r/defaults/main.yml": "b: 1\n", "roles/r/vars/main/c.yml": "c: 1\n",
		"roles/base/tasks/main.yml": "- {name: base, debug: }\n", "roles/more/tasks/main.yml": "- {name: more, debug: }\n",
	})
	if got := names(u); got != "base more task restart" {
		t.Errorf("got the tasks %q", got)
	}
	got := map[string]How{}
	for _, d := range u.Definitions {
		got[d.Name] = d.How
	}
	if diff := cmp.Diff(map[string]How{"a": PlayVar, "b": Default, "c": RoleVar}, got); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
	}
	if u.Dir != filepath.Join(dir, "roles/r") || len(u.Faults) > 0 {
		t.Errorf("got %q, %v", u.Dir, u.Faults)
	}
}

func TestFaultsOfFiles(t *testing.T) {
	for name, test := range map[string]struct {
		text, want string
		line       int
	}{
		"a mapping where tasks are":  {"# a\nname: x\n", "found a mapping; write a list of tasks", 2},
		"a text where tasks are":     {"x\n", "found a text; write a list of tasks", 1},
		"tasks of a block":           {"- name: b\n  block:\n    debug: x\n", "found a mapping; write a list of tasks", 3},
		"no YAML":                    {"- name: x\n  debug: [\n", "invalid YAML: ", 0},
		"an empty file has no tasks": {"---\n", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			u, _ := walked(t, map[string]string{"roles/r/tasks/main.yml": test.text})
			if test.want == "" {
				if len(u.Faults) > 0 {
					t.Errorf("got %v", u.Faults)
				}
				return
			}
			if len(u.Faults) != 1 || !strings.HasPrefix(u.Faults[0].Message, test.want) || test.line > 0 && u.Faults[0].Line != test.line {
				t.Errorf("want %q on line %d, got %v", test.want, test.line, u.Faults)
			}
		})
	}
}

func TestPlaybooks(t *testing.T) {
	dir := files(t, map[string]string{
		"p.yml":     "- import_playbook: sub/q.yml\n- hosts: all\n  vars: {a: 1}\n  vars_files: [v.yml, none.yml]\n  pre_tasks: [{name: first, debug: }]\n  roles: [x]\n  tasks: [{name: task, debug: }]\n  handlers: [{name: handler, debug: }]\n",
		"sub/q.yml": "- hosts: all\n  tasks: [{name: imported, include_tasks: t.yml}]\n", "sub/t.yml": "- {name: beside, debug: }\n",
		"v.yml": "b: 1\n", "roles/x/tasks/main.yml": "- {name: role, debug: }\n",
	})
	u := Walk([]watches.Watch{{Content: watches.Content{Playbook: filepath.Join(dir, "p.yml")}}}, Search{Dir: dir})[0]
	if got := names(u); got != "imported beside role first task handler" {
		t.Errorf("got the tasks %q", got)
	}
	if len(u.Definitions) != 2 || u.Definitions[1].How != Included || u.Dir != dir {
		t.Errorf("got %v in %q", u.Definitions, u.Dir)
	}
}

func TestModulesAndArguments(t *testing.T) {
	for name, test := range map[string]struct {
		text, module string
		args         map[string]string
		line, column int
	}{
		"the module's key has the position": {"name: x\nwhen: y\nk8s: {kind: Pod}", "k8s", map[string]string{"kind": "Pod"}, 3, 1},
		"keys and values in a text":         {`copy: src=a dest="b c" mode='0600'`, "copy", map[string]string{"src": "a", "dest": "b c", "mode": "0600"}, 1, 1},
		"templates in them":                 {`copy: src={{ a | default("x y") }} dest=b`, "copy", map[string]string{"src": `{{ a | default("x y") }}`, "dest": "b"}, 1, 1},
		"args beside them":                  {"copy: src=a\nargs: {dest: b}", "copy", map[string]string{"src": "a", "dest": "b"}, 1, 1},
		"args alone":                        {"k8s:\nargs: {kind: Pod}", "k8s", map[string]string{"kind": "Pod"}, 1, 1},
		"a command is not a list of pairs":  {"ansible.builtin.shell: a=b c", "ansible.builtin.shell", nil, 1, 1},
		"an action":                         {"action: copy src=a", "copy", map[string]string{"src": "a"}, 1, 1},
		"an action as a mapping":            {"local_action: {module: copy, src: a}", "copy", map[string]string{"module": "copy", "src": "a"}, 1, 1},
		"no module":                         {"name: x\nblock: []", "", nil, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var document yaml.Node
			if err := yaml.Unmarshal([]byte(test.text), &document); err != nil {
				t.Fatal(err)
			}
			task := newTask(document.Content[0], "f.yml", place{})
			got := map[string]string(nil)
			if task.Args != nil && task.Args.Kind == yaml.MappingNode {
				got = map[string]string{}
				for i := 0; i+1 < len(task.Args.Content); i += 2 {
					got[task.Args.Content[i].Value] = task.Args.Content[i+1].Value
				}
			}
			if task.Module != test.module || task.Position != (Position{"f.yml", test.line, test.column}) {
				t.Errorf("got %s at %s", task.Module, task.Position)
			}
			if diff := cmp.Diff(test.args, got); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}

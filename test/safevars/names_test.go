package safevars

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
	"github.com/ensign-operator/ensign/test/harness/cores"
)

// theirs is what the author of an object would like a variable to be.
const theirs = "the author's"

// droppedNames are those that Ansible sets itself, with an expression that tells
// its own value from the author's.
func droppedNames() []string {
	return []string{
		"groups", "hostvars", "vars", "environment", "playbook_dir", "play_hosts", "role_name", "role_names", "role_path", "role_uuid",
	}
}

// passedNames have a meaning to Ansible in other places than variables: as
// keywords of plays and tasks, as functions of templates.
func passedNames() []string {
	return strings.Fields(`name namespace port hosts tags become become_user become_method connection remote_user strategy serial
		gather_facts gather_subset order roles tasks handlers pre_tasks post_tasks vars_files vars_prompt max_fail_percentage any_errors_fatal force_handlers
		ignore_errors ignore_unreachable module_defaults no_log run_once check_mode diff debugger throttle timeout collections action args async poll
		changed_when failed_when when until retries delay delegate_to delegate_facts local_action loop loop_control notify listen register
		lookup query q now range dict cycler joiner lipsum undef item role state module_utils play task host`)
}

// TestWhyNamesAreRefused shows what they would do, marked as the author's texts
// are: the table of names would be wrong if they did nothing.
func TestWhyNamesAreRefused(t *testing.T) {
	tests := map[string]struct{ task, want string }{
		"ansible_python_interpreter": {`{"ansible.builtin.ping": null}`, "started"},
		"ansible_shell_executable":   {`{"ansible.builtin.shell": "true"}`, "started"},
		"ansible_become_exe":         {`{"ansible.builtin.raw": "true", "become": true, "become_user": "nobody", "become_method": "ansible.builtin.sudo"}`, "started"},
		"inventory_hostname":         {`{"ansible.builtin.debug": {"msg": "<{{ inventory_hostname }}>"}}`, "<PROGRAM>"},
		"inventory_hostname_short":   {`{"ansible.builtin.debug": {"msg": "<{{ inventory_hostname_short }}>"}}`, "<PROGRAM>"},
		"inventory_dir":              {`{"ansible.builtin.debug": {"msg": "<{{ inventory_dir }}>"}}`, "<PROGRAM>"},
		"inventory_file":             {`{"ansible.builtin.debug": {"msg": "<{{ inventory_file }}>"}}`, "<PROGRAM>"},
		"group_names":                {`{"ansible.builtin.debug": {"msg": "<{{ group_names }}>"}}`, "<PROGRAM>"},
		"omit":                       {`{"ansible.builtin.debug": {"msg": "<{{ missing | default(omit) }}>"}}`, "<PROGRAM>"},
		"ansible_facts":              {`{"ansible.builtin.debug": {"msg": "<{{ ansible_facts }}>"}}`, "<PROGRAM>"},
	}
	cores.OnEach(t, func(t *testing.T, c cores.Core) {
		p := newPlaybooks(t, c)
		for name, test := range tests {
			if _, err := extravars.Build(map[string]any{"spec": map[string]any{name: theirs}}, thing(true)); !errors.As(err, new(*extravars.InvalidSpecError)) {
				t.Errorf("%s: got error %v, want it refused", name, err)
			}
			r := setup{}.lay(t, c)
			program := filepath.Join(r.dir, "program")
			started := filepath.Join(r.dir, "started")
			write(t, program, []byte("#!/bin/sh\ntouch "+started+"\nexit 1\n"))
			if err := os.Chmod(program, 0o700); err != nil {
				t.Fatal(err)
			}
			vars := map[string]any{"ansible_python_interpreter": c.Python}
			vars[name] = map[string]any{"__ansible_unsafe": program}
			r.rewrite(t, vars, `[{"hosts": "localhost", "gather_facts": false, "tasks": [`+test.task+`]}]`)
			p.run(t, &r, "names.yml")
			seen := strings.Contains(r.output, strings.ReplaceAll(test.want, "PROGRAM", program))
			if test.want == "started" {
				seen = exists(started)
			}
			if !seen {
				t.Errorf("%s does nothing, so it need not be refused:\n%s", name, r.output)
			}
		}
	})
}

// rewrite gives a run other variables and a playbook.
func (r run) rewrite(t *testing.T, vars map[string]any, playbook string) {
	t.Helper()
	text, err := json.Marshal(vars)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(r.dir, "env", "extravars"), append([]byte("\t\n"), text...))
	r.rewritePlaybook(t, playbook)
}

func (r run) rewritePlaybook(t *testing.T, playbook string) {
	t.Helper()
	write(t, filepath.Join(r.dir, "project", "names.yml"), []byte(playbook))
}

// TestNamesThatAreDropped: the object's value is no variable, but can be read in
// the object's own. Given as a variable all the same, Ansible's own value wins.
func TestNamesThatAreDropped(t *testing.T) {
	spec := map[string]any{}
	for _, name := range droppedNames() {
		spec[name] = theirs
	}
	vars, err := extravars.Build(map[string]any{"spec": spec}, thing(true))
	if err != nil || len(vars.Dropped) != len(spec) {
		t.Fatalf("got %q dropped (error %v), want all of %q", vars.Dropped, err, droppedNames())
	}
	cores.OnEach(t, func(t *testing.T, c cores.Core) {
		r := setup{object: func(string) map[string]any { return map[string]any{"spec": spec} }}.start(t, c, "--role", "names")
		r.finished(t, "done")
		shown := r.shown(t)
		for _, name := range droppedNames() {
			if strings.Contains(shown[name], theirs) || shown[name] == "" {
				t.Errorf("%s is %q, want Ansible's own value", name, shown[name])
			}
			if shown["spec_"+name] != theirs {
				t.Errorf("%s in the object's own variable is %q, want %q", name, shown["spec_"+name], theirs)
			}
		}

		given := map[string]any{"scratch": r.scratch, "ansible_python_interpreter": c.Python, "_safe_test_thing_spec": spec}
		for name := range spec {
			given[name] = map[string]any{"__ansible_unsafe": theirs}
		}
		forced := setup{}.lay(t, c)
		given["scratch"] = forced.scratch
		forced.rewrite(t, given, `[{"hosts": "localhost", "gather_facts": false, "roles": ["names"]}]`)
		newPlaybooks(t, c).run(t, &forced, "names.yml")
		forced.finished(t, "done")
		for name, value := range forced.shown(t) {
			if slices.Contains(droppedNames(), name) && strings.Contains(value, theirs) {
				t.Errorf("%s is %q where it is given as a variable: it must be refused, not dropped", name, value)
			}
		}
	})
}

// shown is what the role "names" wrote.
func (r run) shown(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.scratch, "names"))
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		shown[name] = value
	}
	return shown
}

// TestNamesThatPass: they are variables like any other, and change nothing else.
func TestNamesThatPass(t *testing.T) {
	object := func(markers string) map[string]any {
		spec := map[string]any{}
		for _, name := range passedNames() {
			spec[name] = texts(templates[:1], markers, name)[0]
		}
		return map[string]any{"spec": spec}
	}
	if vars, err := extravars.Build(object("x"), thing(true)); err != nil || len(vars.Dropped) > 0 {
		t.Fatalf("got %q dropped (error %v), want all to pass", vars.Dropped, err)
	}
	cores.OnEach(t, func(t *testing.T, c cores.Core) {
		r := setup{object: object}.start(t, c, "-p", "pass.yml")
		r.finished(t, "done")
		if executed := r.executed(t); len(executed) > 0 {
			t.Errorf("texts were executed: %q", executed)
		}
		text, err := os.ReadFile(filepath.Join(r.scratch, "passed"))
		if err != nil {
			t.Fatal(err)
		}
		want := "host localhost, user-less, task by its own name, 2 items, handled, skipped no"
		if got := strings.TrimSpace(string(text)); got != want {
			t.Errorf("the play did %q, want %q", got, want)
		}
	})
}

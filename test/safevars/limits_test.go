package safevars

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/cores"
)

// TestWhatContentMustNotDo shows the places where Ansible, or the content
// itself, trusts a text anew. No encoding can help there. When one of them goes,
// this test says so, and the documentation can drop its warning.
func TestWhatContentMustNotDo(t *testing.T) {
	const template = "{{ lookup('pipe', 'COMMAND') }}"
	tests := map[string]handed{
		"a prompt's default, which Ansible trusts where nobody can be asked": {template, `[{"hosts": "localhost", "gather_facts": false,
			"vars_prompt": [{"name": "asked", "default": "{{ p0 }}"}], "tasks": [{"debug": {"msg": "{{ asked }}"}}]}]`},
		"a file that is written with the text and read as variables": {template, `[{"hosts": "localhost", "gather_facts": false, "tasks": [
			{"copy": {"content": "{{ {'again': p0} | to_json }}", "dest": "{{ scratch }}/again.yml", "mode": "0600"}},
			{"include_vars": {"file": "{{ scratch }}/again.yml"}}, {"debug": {"msg": "{{ again }}"}}]}]`},
		"a file that is written with the text and read as a template": {template, `[{"hosts": "localhost", "gather_facts": false, "tasks": [
			{"copy": {"content": "{{ p0 }}", "dest": "{{ scratch }}/again.j2", "mode": "0600"}},
			{"debug": {"msg": "{{ lookup('template', scratch ~ '/again.j2') }}"}}]}]`},
	}
	cores.OnEach(t, func(t *testing.T, c cores.Core) { areExecuted(t, c, tests) })
}

// TestTextsThatAnsibleHandsOn shows where Ansible itself puts a text into a command
// line as it is: no template, and still a command.
func TestTextsThatAnsibleHandsOn(t *testing.T) {
	const remote = `"raw": "true", "ignore_unreachable": true, "vars": {"ansible_ssh_executable": "{{ scratch }}/ssh"}`
	tests := map[string]handed{
		"the host of a task that is delegated, an option to ssh": {
			"-oProxyCommand=COMMAND", play + remote + `, "delegate_to": "{{ p0 }}"}]}]`,
		},
		"the name of a host that is added, an option to ssh": {
			"-oProxyCommand=COMMAND", play + `"add_host": {"name": "{{ p0 }}", "groups": "added"}}]},
				{"hosts": "added", "gather_facts": false, "tasks": [{` + remote + `}]}]`,
		},
		"names of environment variables, words of a shell": {"a;COMMAND;b", play + `"command": "true", "environment": "{{ names }}"}]}]`},
		"the name of a variable, which steers Ansible": {"/tmp/$(COMMAND)", "# In JSON no name is a template.\n" + play + `"set_fact": {"{{ item.key }}": "{{ item.value }}"},
			"loop": "{{ facts | dict2items }}"}, {"command": "true", "ignore_errors": true}]}]`},
		"the user to become, a word of a shell": {"x; COMMAND; #", play + `"raw": "true", "become": true, "become_user": "{{ p0 }}"}]}]`},
	}
	cores.OnEach(t, func(t *testing.T, c cores.Core) { areExecuted(t, c, tests) })
}

func areExecuted(t *testing.T, c cores.Core, tests map[string]handed) {
	t.Helper()
	p := newPlaybooks(t, c)
	for why, test := range tests {
		t.Run(why, func(t *testing.T) { test.isExecuted(t, c, p) })
	}
}

// TestTextsThatHelmIsGiven shows the same of a module that operators use.
func TestTextsThatHelmIsGiven(t *testing.T) {
	c := cores.Newest(t)
	release := handed{"x --post-renderer='COMMAND'", play + `"kubernetes.core.helm":
		{"binary_path": "{{ scratch }}/helm", "name": "{{ p0 }}", "chart_ref": "chart", "release_namespace": "default"}}]}]`}
	release.isExecuted(t, c, newPlaybooks(t, c))
}

// handed is a text that a playbook hands on: as p0, as a key of names, and as a
// temporary directory of Ansible in facts.
type handed struct{ text, playbook string }

const play = `[{"hosts": "localhost", "gather_facts": false, "tasks": [{"ignore_errors": true, "ignore_unreachable": true, `

// programs stand in for those that know one option which runs something: OpenSSH,
// where nothing says that options have ended, and helm, which takes a program there.
func programs() map[string]string {
	return map[string]string{
		"ssh": `for arg; do case $arg in --) exit 255 ;; -oProxyCommand=*) exec /bin/sh -c "${arg#*=}" ;; esac; done`,
		"helm": `case $1 in
			version) echo 'version.BuildInfo{Version:"v3.14.0", GitCommit:""}'; exit ;;
			list) echo '[]'; exit ;;
			show) echo '{"apiVersion": "v2", "name": "chart", "version": "1.0.0"}'; exit ;;
		esac
		for arg; do case $arg in --) exit 1 ;; --post-renderer=*) ${arg#*=} ;; esac; done`,
	}
}

// isExecuted fails the test unless the command in the text is executed.
func (h handed) isExecuted(t *testing.T, c cores.Core, p playbooks) {
	t.Helper()
	r := setup{object: func(markers string) map[string]any {
		text, _ := texts([]string{h.text}, markers, "handed")[0].(string)
		return map[string]any{"spec": map[string]any{
			"p0": text, "names": map[string]any{text: "1"}, "facts": map[string]any{"ansible_remote_tmp": text},
		}}
	}}.lay(t, c)
	for name, script := range programs() {
		path := filepath.Join(r.scratch, name)
		write(t, path, []byte("#!/bin/sh\n"+script+"\n"))
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r.rewritePlaybook(t, h.playbook)
	code := p.run(t, &r, "names.yml")
	if executed := r.executed(t); len(executed) != 1 {
		t.Errorf("got exit code %d and %q, want the text executed:\n%s", code, executed, r.output)
	}
}

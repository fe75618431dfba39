package safevars

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWhatContentMustNotDo shows the places where Ansible, or the content
// itself, trusts a text anew. No encoding can help there. When one of them goes,
// this test says so, and the documentation can drop its warning.
func TestWhatContentMustNotDo(t *testing.T) {
	tests := map[string]string{
		"a prompt's default, which Ansible trusts where nobody can be asked": `[{"hosts": "localhost", "gather_facts": false,
			"vars_prompt": [{"name": "asked", "default": "{{ p0 }}"}], "tasks": [{"debug": {"msg": "{{ asked }}"}}]}]`,
		"a file that is written with the text and read as variables": `[{"hosts": "localhost", "gather_facts": false, "tasks": [
			{"copy": {"content": "{{ {'again': p0} | to_json }}", "dest": "{{ scratch }}/again.yml", "mode": "0600"}},
			{"include_vars": {"file": "{{ scratch }}/again.yml"}}, {"debug": {"msg": "{{ again }}"}}]}]`,
		"a file that is written with the text and read as a template": `[{"hosts": "localhost", "gather_facts": false, "tasks": [
			{"copy": {"content": "{{ p0 }}", "dest": "{{ scratch }}/again.j2", "mode": "0600"}},
			{"debug": {"msg": "{{ lookup('template', scratch ~ '/again.j2') }}"}}]}]`,
	}
	onEachCore(t, func(t *testing.T, c core) {
		p := newPlaybooks(t, c)
		for why, playbook := range tests {
			t.Run(why, func(t *testing.T) {
				r := setup{object: oneText}.lay(t, c)
				r.rewritePlaybook(t, playbook)
				code := p.run(t, &r, "names.yml")
				if executed := r.executed(t); len(executed) != 1 {
					t.Errorf("got exit code %d and %q, want the text executed:\n%s", code, executed, r.output)
				}
			})
		}
	})
}

// TestTextsThatAnsibleHandsOn shows where Ansible itself puts a text into a command
// line as it is: no template, and still a command. The ssh of this test knows the one
// option of OpenSSH that runs something.
func TestTextsThatAnsibleHandsOn(t *testing.T) {
	const ssh = "#!/bin/sh\nfor arg; do case $arg in --) exit 255 ;; -oProxyCommand=*) exec /bin/sh -c \"${arg#*=}\" ;; esac; done\n"
	const play = `[{"hosts": "localhost", "gather_facts": false, "tasks": [{"ignore_errors": true, "ignore_unreachable": true, `
	const remote = `"raw": "true", "ignore_unreachable": true, "vars": {"ansible_ssh_executable": "{{ scratch }}/ssh"}`
	tests := map[string]struct{ text, playbook string }{
		"the host of a task that is delegated, an option to ssh": {
			"-oProxyCommand=COMMAND", play + remote + `, "delegate_to": "{{ p0 }}"}]}]`,
		},
		"the name of a host that is added, an option to ssh": {
			"-oProxyCommand=COMMAND", play + `"add_host": {"name": "{{ p0 }}", "groups": "added"}}]},
				{"hosts": "added", "gather_facts": false, "tasks": [{` + remote + `}]}]`,
		},
		"names of environment variables, words of a shell": {"a;COMMAND;b", play + `"command": "true", "environment": "{{ names }}"}]}]`},
		"the user to become, a word of a shell":            {"x; COMMAND; #", play + `"raw": "true", "become": true, "become_user": "{{ p0 }}"}]}]`},
	}
	onEachCore(t, func(t *testing.T, c core) {
		p := newPlaybooks(t, c)
		for why, test := range tests {
			t.Run(why, func(t *testing.T) {
				r := setup{object: func(markers string) map[string]any {
					text := texts([]string{test.text}, markers, "handed")[0].(string)
					return map[string]any{"spec": map[string]any{"p0": text, "names": map[string]any{text: "1"}}}
				}}.lay(t, c)
				script := filepath.Join(r.scratch, "ssh")
				write(t, script, []byte(ssh))
				if err := os.Chmod(script, 0o700); err != nil {
					t.Fatal(err)
				}
				r.rewritePlaybook(t, test.playbook)
				code := p.run(t, &r, "names.yml")
				if executed := r.executed(t); len(executed) != 1 {
					t.Errorf("got exit code %d and %q, want the text executed:\n%s", code, executed, r.output)
				}
			})
		}
	})
}

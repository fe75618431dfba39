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

// TestHostsThatAreOptions shows that Ansible gives the name of a host to ssh as it
// is, so that one which begins with a dash is an option there. The ssh of this test
// knows the one option of OpenSSH that runs a command.
func TestHostsThatAreOptions(t *testing.T) {
	const ssh = "#!/bin/sh\nfor arg; do case $arg in --) exit 255 ;; -oProxyCommand=*) exec /bin/sh -c \"${arg#*=}\" ;; esac; done\n"
	const task = `{"raw": "true", "ignore_unreachable": true, "vars": {"ansible_ssh_executable": "{{ scratch }}/ssh"}`
	tests := map[string]string{
		"a task is delegated to it": `[{"hosts": "localhost", "gather_facts": false, "tasks": [` + task + `, "delegate_to": "{{ p0 }}"}]}]`,
		"it is added to the inventory": `[{"hosts": "localhost", "gather_facts": false, "tasks": [{"add_host": {"name": "{{ p0 }}", "groups": "added"}}]},
			{"hosts": "added", "gather_facts": false, "tasks": [` + task + `}]}]`,
	}
	host := func(markers string) map[string]any {
		return map[string]any{"spec": named("p", texts([]string{"-oProxyCommand=COMMAND"}, markers, "host"))}
	}
	onEachCore(t, func(t *testing.T, c core) {
		p := newPlaybooks(t, c)
		for why, playbook := range tests {
			t.Run(why, func(t *testing.T) {
				r := setup{object: host}.lay(t, c)
				script := filepath.Join(r.scratch, "ssh")
				write(t, script, []byte(ssh))
				if err := os.Chmod(script, 0o700); err != nil {
					t.Fatal(err)
				}
				r.rewritePlaybook(t, playbook)
				code := p.run(t, &r, "names.yml")
				if executed := r.executed(t); len(executed) != 1 {
					t.Errorf("got exit code %d and %q, want the option executed:\n%s", code, executed, r.output)
				}
			})
		}
	})
}

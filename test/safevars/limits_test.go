package safevars

import "testing"

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

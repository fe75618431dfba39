package runs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/pkg/content"
)

const helloRole = `
- name: Say hello
  ansible.builtin.debug:
    msg: "hello {{ size }} {{ (1, 2) | length }}"
`

func TestWhatContentFinds(t *testing.T) {
	const eachHost = "- hosts: all\n  gather_facts: false\n  tasks:\n    - ansible.builtin.debug: {msg: \"{{ inventory_hostname }} {{ colour | default('none') }}\"}\n"
	tests := map[string]struct {
		files map[string]string
		// Paths are relative to the files.
		playbook, role, rolesPath, inventory string
		want                                 []string
	}{
		"a role's dependency in the roles path that is common to all watches": {
			files: map[string]string{
				"roles/top/tasks/main.yml": "", "roles/top/meta/main.yml": "dependencies: [base]\n",
				"elsewhere/base/tasks/main.yml": "- ansible.builtin.debug: {msg: from the dependency}\n",
			},
			role: "top", rolesPath: "elsewhere", want: []string{"from the dependency"},
		},
		"whatever lies beside a playbook": {
			files: map[string]string{
				"playbooks/site.yml": `
- hosts: localhost
  gather_facts: false
  vars_files: [vars.yml]
  roles: [beside]
  tasks:
    - ansible.builtin.debug: {msg: "{{ from_vars }} {{ from_group }} {{ lookup('file', 'text') }}"}
    - ansible.builtin.include_tasks: more.yml
`,
				"playbooks/vars.yml":                    "from_vars: V\n",
				"playbooks/group_vars/all.yml":          "from_group: G\n",
				"playbooks/text":                        "T",
				"playbooks/more.yml":                    "- ansible.builtin.debug: {msg: included}\n",
				"playbooks/roles/beside/tasks/main.yml": "- ansible.builtin.debug: {msg: role beside}\n",
			},
			playbook: "playbooks/site.yml", want: []string{"role beside", "V G T", "included"},
		},
		"an inventory that is a file which Ansible would ignore in a directory": {
			files:    map[string]string{"play.yml": eachHost, "hosts.ini": "h1 ansible_connection=local colour=red\n"},
			playbook: "play.yml", inventory: "hosts.ini", want: []string{"h1 red"},
		},
		"an inventory in YAML": {
			files:    map[string]string{"play.yml": eachHost, "hosts.yaml": "all: {hosts: {y1: {ansible_connection: local}}}\n"},
			playbook: "play.yml", inventory: "hosts.yaml", want: []string{"y1 none"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, test.files)
			spec := b.playbook(test.playbook)
			if test.role != "" {
				spec = b.role(test.role)
				b.SkipFacts = true
			}
			if test.rolesPath != "" {
				b.RolesPath = []string{b.In(test.rolesPath)}
			}
			if test.inventory != "" {
				b.Inventory = b.In(test.inventory)
			}
			wantOutcome(t, b.run(t.Context(), spec), content.Succeeded, content.ReasonSuccessful)
			if diff := cmp.Diff(test.want, b.messages()); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

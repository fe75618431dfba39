package runs

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

const helloRole = `
- name: Say hello
  ansible.builtin.debug:
    msg: "hello {{ size }} {{ (1, 2) | length }}"
`

func TestRole(t *testing.T) {
	b := newBench(t, map[string]string{"roles/hello/tasks/main.yml": helloRole})
	result := b.run(t.Context(), b.role("hello"))
	wantOutcome(t, result, jobevent.Succeeded, jobevent.ReasonSuccessful)
	if got := b.messages(); !slices.Contains(got, "hello 3 2") {
		t.Errorf("got messages %q", got)
	}
	if result.Summary.OK != 2 {
		t.Errorf("got %d ok tasks, want 2: the role's and the gathering of facts", result.Summary.OK)
	}
	for _, e := range b.events {
		if strings.Contains(e.Stdout, "\x1b[0;") {
			t.Errorf("got coloured output %q", e.Stdout)
		}
	}
	for _, name := range []string{"command.json", "events.jsonl", "outcome.json"} {
		if b.artifact(uid, name) == "" {
			t.Errorf("got an empty artifact %q", name)
		}
	}
	if got := b.artifact(uid, "command.json"); !strings.Contains(got, `"SECRET_OF_THE_MANAGER"`) {
		t.Errorf("got %s, want the names of the environment, without which the test for its values proves nothing", got)
	}
	b.SkipFacts = true
	spec := b.role("hello")
	spec.ID = "run-2"
	if result = b.run(t.Context(), spec); result.Summary.OK != 1 {
		t.Errorf("got %d ok tasks without facts, want the role's only", result.Summary.OK)
	}
}

func TestWhatContentFinds(t *testing.T) {
	const (
		collection = "collections/ansible_collections/made/forthis/"
		eachHost   = "- hosts: all\n  gather_facts: false\n  tasks:\n    - ansible.builtin.debug: {msg: \"{{ inventory_hostname }} {{ colour | default('none') }}\"}\n"
	)
	tests := map[string]struct {
		files map[string]string
		// Paths are relative to the files.
		playbook, role, rolesPath, collectionsPath, inventory string
		want                                                  []string
	}{
		"a role's dependency in the roles path that is common to all watches": {
			files: map[string]string{
				"roles/top/tasks/main.yml": "", "roles/top/meta/main.yml": "dependencies: [base]\n",
				"elsewhere/base/tasks/main.yml": "- ansible.builtin.debug: {msg: from the dependency}\n",
			},
			role: "top", rolesPath: "elsewhere", want: []string{"from the dependency"},
		},
		"a role of a collection, with the collection's module": {
			files: map[string]string{
				collection + "galaxy.yml":                    "namespace: made\nname: forthis\nversion: 1.0.0\n",
				collection + "roles/hello/tasks/main.yml":    helloRole + "- made.forthis.answer:\n",
				collection + "plugins/modules/answer.py":     "from ansible.module_utils.basic import AnsibleModule\nAnsibleModule({}).exit_json(msg='from its module')\n",
				collection + "roles/hello/defaults/main.yml": "unused: 1\n",
			},
			role: "made.forthis.hello", collectionsPath: "collections", want: []string{"hello 3 2", "from its module"},
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
		"an inventory that is a directory, with its group_vars": {
			files: map[string]string{
				"play.yml":               eachHost,
				"inv/hosts":              "[web]\nw1 ansible_connection=local\n",
				"inv/group_vars/web.yml": "colour: blue\n",
				"inv/..data/hosts":       "from-the-copy-of-a-configmap ansible_connection=local\n",
				"inv/.hidden":            "hidden ansible_connection=local\n",
			},
			playbook: "play.yml", inventory: "inv", want: []string{"w1 blue"},
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
			in := func(path string) string { return filepath.Join(b.content, path) }
			spec := b.playbook(test.playbook)
			if test.role != "" {
				spec = b.role(test.role)
				b.SkipFacts = true
			}
			if test.rolesPath != "" {
				b.RolesPath = []string{in(test.rolesPath)}
			}
			if test.collectionsPath != "" {
				b.CollectionsPath, spec.RolesPath = []string{in(test.collectionsPath)}, ""
			}
			if test.inventory != "" {
				b.Inventory = in(test.inventory)
			}
			wantOutcome(t, b.run(t.Context(), spec), jobevent.Succeeded, jobevent.ReasonSuccessful)
			if diff := cmp.Diff(test.want, b.messages()); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

// A vault file in a directory with a blank in its name shows that the quoting
// of --ansible-args means what it would mean to a shell.
func TestArgs(t *testing.T) {
	b := newBench(t, map[string]string{
		"a dir/password": "correct horse\n",
		"play.yml":       "- hosts: localhost\n  gather_facts: false\n  vars: {inner: !vault |\n",
	})
	encrypted := vaultEncrypt(t, filepath.Join(b.content, "a dir", "password"), "the hidden text")
	scratch.Write(t, b.content, map[string]string{"play.yml": "- hosts: localhost\n  gather_facts: false\n  vars:\n    inner: " +
		strings.ReplaceAll(encrypted, "\n", "\n    ") + "\n  tasks:\n    - ansible.builtin.debug: {msg: \"{{ inner }} {{ extra }}\"}\n"})
	b.Args = "--vault-password-file '" + filepath.Join(b.content, "a dir", "password") + "' -e \"extra='two words'\""
	wantOutcome(t, b.run(t.Context(), b.playbook("play.yml")), jobevent.Succeeded, jobevent.ReasonSuccessful)
	if got := b.messages(); !slices.Contains(got, "the hidden text two words") {
		t.Errorf("got messages %q", got)
	}

	b.Args = "--syntax-check"
	if got := b.run(t.Context(), b.playbook("play.yml")); got.Outcome.Verdict == jobevent.Succeeded || len(b.events) > 0 {
		t.Errorf("got %+v and %d events for one option that begins with dashes, want it to reach ansible-playbook, which then runs nothing", got.Outcome, len(b.events))
	}
}

package outcomes

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/test/runs/bench"
)

// form is a way in which a watch names its content.
type form string

// The forms. A finalizer is the watch's own role with the finalizer's variables,
// as operators have it: the role takes the tasks of another file then. Of what
// only a playbook can say it is a playbook.
const (
	asRole      form = "role"
	asPlaybook  form = "playbook"
	asFinalizer form = "finalizer"
)

// laidOut is a play that was laid out in one form.
type laidOut struct {
	spec     runner.Spec
	playbook string // what plain ansible-playbook gets
	vars     []byte
}

func (p play) forms() []form {
	if p.tasks == "" {
		return []form{asPlaybook, asFinalizer}
	}
	return []form{asRole, asPlaybook, asFinalizer}
}

// lay writes the content of a play in a form.
func (b *table) lay(t *testing.T, p play, f form) laidOut {
	t.Helper()
	c := laidOut{vars: variables(t, f)}
	c.spec.ExtraVars = c.vars
	if f == asPlaybook || p.tasks == "" {
		text := p.playbook
		if text == "" {
			text = "- name: Play\n  hosts: localhost\n  gather_facts: false\n  tasks:\n" + bench.Indented(p.tasks, "    ")
			if p.handlers != "" {
				text += "  handlers:\n" + bench.Indented(p.handlers, "    ")
			}
		}
		b.writeAll(t, "", p.files)
		c.playbook = b.write(t, "play.yml", text)
		c.spec.Playbook = c.playbook
		return c
	}
	b.writeAll(t, "roles/content/tasks", p.files)
	main := p.tasks
	if f == asFinalizer {
		b.write(t, "roles/content/tasks/absent.yml", p.tasks)
		b.write(t, "roles/content/tasks/present.yml", "- ansible.builtin.fail: {msg: these are not the finalizer's tasks}\n")
		main = "- name: Choose\n  ansible.builtin.include_tasks: \"{{ state | default('present') }}.yml\"\n"
	}
	b.write(t, "roles/content/tasks/main.yml", main)
	if p.handlers != "" {
		b.write(t, "roles/content/handlers/main.yml", p.handlers)
	}
	c.spec.Role, c.spec.RolesPath = "content", filepath.Join(b.content, "roles")
	c.playbook = b.write(t, "../role.yml", "- hosts: localhost\n  gather_facts: false\n  roles: [content]\n")
	return c
}

func (b *table) writeAll(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		b.write(t, filepath.Join(dir, name), text)
	}
}

// variables are those of a CR, as the controller builds them.
func variables(t *testing.T, f form) []byte {
	t.Helper()
	cr := map[string]any{
		"apiVersion": "example.com/v1", "kind": "Play",
		"metadata": map[string]any{"name": "sample", "namespace": "default"},
		"spec":     map[string]any{"size": int64(3), "message": "{{ untrusted }}"},
	}
	options := extravars.Options{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Play"}, SnakeCase: true, MarkUnsafe: true}
	if f == asFinalizer {
		options.Finalizing, options.FinalizerVars = true, map[string]any{"state": "absent"}
	}
	return bench.Variables(t, cr, options)
}

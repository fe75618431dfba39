//go:build long

package runs

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
)

func TestTheNextManagerEndsEachKindOfTask(t *testing.T) {
	tests := map[string]string{
		"a module": `
- name: Sleep
  ansible.builtin.shell: touch '{{ begun }}'; exec sleep 120
`,
		"a task that ignores TERM": `
- name: Sleep
  ansible.builtin.shell: |
    trap '' TERM
    touch '{{ begun }}'
    sleep 120 & wait
    sleep 120
`,
		"an asynchronous task that is waited for": `
- name: Sleep
  ansible.builtin.shell: touch '{{ begun }}'; exec sleep 120
  async: 240
  poll: 1
`,
		"a lookup in ansible-playbook itself": `
- name: Sleep
  ansible.builtin.debug: {msg: "{{ lookup('pipe', 'touch {{ begun }}; exec sleep 120') }}"}
`,
		"a task in a session of its own, with nobody's parent": `
- name: Sleep
  ansible.builtin.shell: setsid bash -c 'trap "" TERM HUP INT; touch {{ begun }}; exec sleep 120' >/dev/null 2>&1 </dev/null & sleep 120
`,
	}
	for name, tasks := range tests {
		t.Run(name, func(t *testing.T) {
			k := startManager(t, tasks)
			if left := k.kill(); len(left) < 3 {
				t.Fatalf("got processes %q: the test shows nothing", left)
			}
			k.takeOver()
		})
	}
}

func TestIdle(t *testing.T) {
	b, begun := newSleeper(t, "")
	b.IdleTimeout = 15 * time.Second // Ansible says nothing while it starts.
	got := b.run(t.Context(), b.role("content"))
	wantOutcome(t, got, jobevent.Failed, jobevent.ReasonTimeout)
	if want := "the run was idle\nno job event and no output for 15s\nended in play [localhost], task [content : Sleep] (roles/content/tasks/main.yml:2)"; got.Outcome.Message != want {
		t.Errorf("got message %q, want %q", got.Outcome.Message, want)
	}
	if _, err := os.Stat(begun); err != nil {
		t.Errorf("the task had not begun: %v", err)
	}
}

func TestARunThatTalksIsNotIdle(t *testing.T) {
	b := newBench(t, map[string]string{"roles/content/tasks/main.yml": `
- name: Talk
  ansible.builtin.command: sleep 2
  loop: "{{ range(10) | list }}"
`})
	b.SkipFacts = true
	b.IdleTimeout = 15 * time.Second
	wantOutcome(t, b.run(context.Background(), b.role("content")), jobevent.Succeeded, jobevent.ReasonSuccessful)
}

package runs

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/pkg/content"
)

// The processes of a run end with it, and so would a job in the middle of its work.
func TestARunWaitsForAsynchronousJobs(t *testing.T) {
	b := newBench(t, map[string]string{"play.yml": `
- hosts: localhost
  gather_facts: false
  tasks:
    - name: Fire and forget
      ansible.builtin.shell: "sleep 2; touch {{ playbook_dir }}/{{ item }}"
      async: 60
      poll: 0
      loop: [one, two]
    - name: Fire and forget in secret
      ansible.builtin.shell: "sleep 3; touch {{ playbook_dir }}/three"
      async: 60
      poll: 0
      no_log: true
    - ansible.builtin.debug: {msg: the last task}
`})
	wantOutcome(t, b.run(t.Context(), b.playbook("play.yml")), content.Succeeded, content.ReasonSuccessful)
	for _, name := range []string{"one", "two", "three"} {
		if _, err := os.Stat(b.In(name)); err != nil {
			t.Errorf("the job has not ended: %v", err)
		}
	}
}

func TestARunThatWaitsTooLongNamesTheTaskOfTheJob(t *testing.T) {
	b := newBench(t, map[string]string{"play.yml": `
- name: The play
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Fire and forget
      ansible.builtin.command: sleep 3600
      async: 7200
      poll: 0
    - ansible.builtin.debug: {msg: the last task}
`})
	spec := b.playbook("play.yml")
	spec.Timeout = 20 * time.Second
	result := b.run(t.Context(), spec)
	wantOutcome(t, result, content.Failed, content.ReasonTimeout)
	if want := "play [The play], task [Fire and forget (wait for its asynchronous job)]"; !strings.Contains(result.Outcome.Message, want) {
		t.Errorf("got %q, want %q in it", result.Outcome.Message, want)
	}
}

// Content such as that of galaxy-operator takes group, version and kind from the path.
func TestContentFindsItsResourceInThePathOfTheInventory(t *testing.T) {
	b := newBench(t, map[string]string{"play.yml": `
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.debug:
        msg: "{{ (hostvars['localhost'].inventory_file | split('/'))[4:] | join('/') }} {{ inventory_dir | basename }}"
`})
	spec := b.playbook("play.yml")
	spec.Resource = "g.example.com/v1/Kind/ns/" + strings.Repeat("a", 253)
	wantOutcome(t, b.run(t.Context(), spec), content.Succeeded, content.ReasonSuccessful)
	if got := b.messages(); len(got) != 1 || got[0] != spec.Resource+"/inventory/hosts inventory" {
		t.Errorf("got %q", got)
	}
}

// A proxy of content is for its requests elsewhere: the API proxy is at 127.0.0.1.
func TestModulesBypassAnHTTPProxyOfATask(t *testing.T) {
	b := newBench(t, map[string]string{"play.yml": `
- hosts: localhost
  gather_facts: false
  environment: {HTTPS_PROXY: "http://127.0.0.1:9"}
  tasks:
    - ansible.builtin.command: printenv NO_PROXY no_proxy HTTPS_PROXY
      register: play
    - ansible.builtin.command: printenv NO_PROXY no_proxy
      environment: {no_proxy: .example.com}
      register: task
    - ansible.builtin.debug: {msg: "{{ play.stdout_lines | join(' ') }} {{ task.stdout_lines | join(' ') }}"}
`})
	wantOutcome(t, b.run(t.Context(), b.playbook("play.yml")), content.Succeeded, content.ReasonSuccessful)
	const local = "127.0.0.1,localhost"
	want := strings.Join([]string{local, local, "http://127.0.0.1:9", ".example.com," + local, ".example.com," + local}, " ")
	if got := b.messages(); len(got) == 0 || got[len(got)-1] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

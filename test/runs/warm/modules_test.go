package warm

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// parentage reports whether a module's process has executed nothing of its own.
const parentage = `from ansible.module_utils.basic import AnsibleModule
import os
m = AnsibleModule({})
m.exit_json(forked=open('/proc/self/cmdline').read() == open('/proc/%d/cmdline' % os.getppid()).read())
`

// A module that is started cold unasked would be right, and slow.
func modulesAreForks(t *testing.T, b *counted) {
	t.Helper()
	scratch.Write(t, b.Content, map[string]string{
		"collections/ansible_collections/our/own/plugins/modules/parentage.py": parentage,
		"forks.yml": `- hosts: localhost
  gather_facts: false
  tasks:
  - {name: as it is by default, our.own.parentage: }
  - {name: with files, our.own.parentage: , vars: {ansible_pipelining: false}}
  - {name: with a variable, our.own.parentage: , environment: {OURS: yes-it-is}}
  - {name: in the background, our.own.parentage: , async: 60, poll: 1}
`,
	})
	result, events := b.play("forks.yml")
	if result.Outcome.Verdict != content.Succeeded {
		t.Fatalf("got %+v", result.Outcome)
	}
	got := map[string]any{}
	for _, e := range events {
		if strings.HasPrefix(string(e.Kind), "runner_on_") && e.Result["forked"] != nil {
			got[e.Task] = e.Result["forked"]
		}
	}
	want := map[string]any{"as it is by default": true, "with files": false, "with a variable": true, "in the background": false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("forked, of %v:\n%s", slices.Collect(maps.Keys(got)), diff)
	}
}

package warm

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// parentage reports whether a module's process is a fork of a server, and whether its
// code came by the standard input.
const parentage = `from ansible.module_utils.basic import AnsibleModule
import os, sys
m = AnsibleModule({})
m.exit_json(forked='serve.py' in open('/proc/%d/cmdline' % os.getppid()).read(), piped=len(sys.orig_argv) == 1)
`

// A module that is started cold unasked would be right, and slow.
func modulesAreForks(t *testing.T, b *bench) {
	t.Helper()
	scratch.Write(t, b.content, map[string]string{
		"library/parentage.py": parentage,
		"forks.yml": `- hosts: localhost
  gather_facts: false
  tasks:
  - {name: as it is by default, parentage: }
  - {name: with files, parentage: , vars: {ansible_pipelining: false}}
  - {name: with a variable, parentage: , environment: {OURS: yes-it-is}}
  - {name: in the background, parentage: , async: 60, poll: 1}
`,
	})
	result, events := b.play("forks.yml", false)
	if result.Outcome.Verdict != jobevent.Succeeded {
		t.Fatalf("got %+v", result.Outcome)
	}
	got := map[string][2]any{}
	for _, e := range events {
		if strings.HasPrefix(string(e.Kind), "runner_on_") && e.Result["forked"] != nil {
			got[e.Task] = [2]any{e.Result["forked"], e.Result["piped"]}
		}
	}
	want := map[string][2]any{
		"as it is by default": {true, true},
		"with files":          {true, false},
		"with a variable":     {true, true},
		"in the background":   {false, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("forked and by the standard input, of %v:\n%s", slices.Collect(maps.Keys(got)), diff)
	}
}

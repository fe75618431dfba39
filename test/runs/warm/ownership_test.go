package warm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/process/proctree"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/scratch"
	"github.com/ensign-operator/ensign/test/runs/bench"
)

// sleeping is a play whose module sleeps after it has made a file.
const sleeping = `- hosts: localhost
  gather_facts: false
  tasks:
  - name: sleep
    sleeper: {place: "{{ place }}"}
`

const sleeper = `from ansible.module_utils.basic import AnsibleModule
import os, time, subprocess
m = AnsibleModule(dict(place=dict()))
child = subprocess.Popen(['sleep', '600'])
open(m.params['place'] + '.begun', 'w').write(str(os.getpid()))
time.sleep(600)
`

// asleep is a warm run in the middle of its module.
type asleep struct {
	*counted
	cancel context.CancelFunc
	result chan runner.Result
	// forks are the processes of the run that the server has forked.
	forks []int
}

func fallAsleep(t *testing.T, b *counted) *asleep {
	t.Helper()
	scratch.Write(t, b.Content, map[string]string{"sleep.yml": sleeping, "library/sleeper.py": sleeper})
	begun := b.In("out.begun")
	_ = os.Remove(begun) // There may be none.
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	a := &asleep{counted: b, cancel: cancel, result: make(chan runner.Result, 1)}
	b.refusals()
	go func() {
		result, _ := b.playUntil(ctx, "sleep.yml")
		a.result <- result
	}()
	scratch.Eventually(t, "the module", func() bool {
		content, err := os.ReadFile(begun)
		return err == nil && len(content) > 0
	})
	for _, server := range servers(t, b) {
		a.forks = append(a.forks, childrenOf(t, server)...)
	}
	if len(a.forks) != 1 {
		t.Fatalf("got forks %v, want one; started cold: %q", a.forks, b.refusals())
	}
	return a
}

// end waits for the end of the run.
func (a *asleep) end(t *testing.T) runner.Result {
	t.Helper()
	select {
	case result := <-a.result:
		return result
	case <-time.After(waitTimeout):
		t.Fatal("the run is stuck")
		return runner.Result{}
	}
}

// nothingLeft waits for nothing: when a run has ended, no process of it is left.
func (a *asleep) nothingLeft(t *testing.T) {
	t.Helper()
	for _, pid := range a.forks {
		if stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat")); err == nil && !strings.Contains(string(stat), ") Z ") {
			t.Errorf("process %d of the run is left: %s", pid, stat)
		}
	}
	if left, err := harness.ProcessesOf(filepath.Join(a.Runs, bench.UID)); err != nil || len(left) > 0 {
		t.Errorf("processes of the run are left: %v (error %v)", left, err)
	}
}

// servers are the processes of the server: the one that serves, and those that end after their runs.
func servers(t *testing.T, b *counted) []int {
	t.Helper()
	all, err := harness.ProcessesOf(filepath.Join(b.Runs, ".warm"))
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, p := range all {
		if p.Parent == os.Getpid() { // A fork is like its server for a moment.
			found = append(found, p.PID)
		}
	}
	return found
}

// childrenOf are those of a process; none if it is gone.
func childrenOf(t *testing.T, parent int) []int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(parent), "task", strconv.Itoa(parent), "children"))
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
	var found []int
	for word := range strings.FieldsSeq(string(content)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, pid)
	}
	return found
}

func canceledLeavesNothing(t *testing.T, b *counted) {
	t.Helper()
	before := servers(t, b)
	a := fallAsleep(t, b)
	a.cancel()
	if got := a.end(t).Outcome.Verdict; got != content.Canceled {
		t.Errorf("got %s", got)
	}
	a.nothingLeft(t)
	if after := servers(t, b); !slices.Equal(before, after) {
		t.Errorf("the servers were %v and are %v", before, after)
	}
	b.warmly("heat.yml")
}

func whatIsLeftIsEnded(t *testing.T, b *counted) {
	t.Helper()
	scratch.Write(t, b.Content, map[string]string{
		"left.yml": "- hosts: localhost\n  gather_facts: false\n  tasks:\n  - our.own.leaver:\n  - command: sleep 1\n    async: 600\n    poll: 0\n",
		"collections/ansible_collections/our/own/plugins/modules/leaver.py": "from ansible.module_utils.basic import AnsibleModule\nimport os, time\nm = AnsibleModule({})\nif os.fork() == 0:\n    os.setsid()\n" +
			"    for n in range(3): os.dup2(os.open('/dev/null', os.O_RDWR), n)\n    time.sleep(600)\nm.exit_json()\n",
	})
	b.warmly("left.yml", "python: async", "python: async")
	(&asleep{counted: b}).nothingLeft(t)
}

// As a manager that takes the directory over, and as one that loses its lease.
func TestOwnersFindServersAndForks(t *testing.T) {
	for name, end := range map[string]func(dir string, b *counted) proctree.Ended{
		"the next manager": func(dir string, _ *counted) proctree.Ended {
			return proctree.NewReaper(dir, "next").EndAll(time.Second)
		},
		"its own manager": func(_ string, b *counted) proctree.Ended {
			return b.Reaper.EndOwn(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			b.heat()
			a := fallAsleep(t, b)
			before := servers(t, b)
			if ended := end(b.Root.Path(), b); ended.Count < len(a.forks)+len(before) || ended.Left > 0 {
				t.Errorf("got %+v, and there were servers %v with forks %v", ended, before, a.forks)
			}
			if got := a.end(t).Outcome.Verdict; got == content.Succeeded {
				t.Error("the run has succeeded")
			}
			a.nothingLeft(t)
			for _, pid := range before {
				if slices.Contains(servers(t, b), pid) {
					t.Errorf("server %d is left", pid)
				}
			}
		})
	}
}

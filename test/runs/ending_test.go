package runs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// Plain ansible-runner drops a result of this size.
func TestALargeResultIsCutAndNotPassedOver(t *testing.T) {
	b := newBench(t, map[string]string{"play.yml": `
- hosts: localhost
  gather_facts: false
  tasks:
    - name: Say much
      ansible.builtin.fail: {msg: "{{ 'much ' * 1000000 }}"}
      loop: [a]
`})
	got := b.run(t.Context(), b.playbook("play.yml"))
	wantOutcome(t, got, content.Failed, content.ReasonFailed)
	if !strings.Contains(got.Outcome.Message, "task [Say much] (play.yml:5), host [localhost]: ") || !strings.Contains(got.Outcome.Message, "much much") {
		t.Errorf("got outcome %+v, want a failure that says what the task said", got.Outcome)
	}
}

// sleeper sleeps for longer than any test in a module that says that it has begun.
const sleeper = `
- name: Sleep
  ansible.builtin.shell: |
    %s
    touch '{{ begun }}'
    sleep 3600 & wait
    sleep 3600
  args: {executable: /bin/bash}
`

func TestCancel(t *testing.T) {
	tests := map[string]string{ // the script's first line
		"while a module sleeps":                     "",
		"while a module ignores TERM":               "trap '' TERM",
		"while a daemon runs that nobody waits for": "setsid bash -c 'trap \"\" TERM; exec sleep 3600' >/dev/null 2>&1 </dev/null &",
	}
	for name, first := range tests {
		t.Run(name, func(t *testing.T) {
			b, begun := newSleeper(t, first)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			told := make(chan time.Time, 1)
			go func() {
				waitFor(ctx, begun)
				told <- time.Now()
				cancel()
			}()
			got := b.run(ctx, b.role("content"))
			cancel()
			wantOutcome(t, got, content.Canceled, content.ReasonCanceled)
			if took := got.Ended.Sub(<-told); took > scratch.WaitTimeout {
				t.Errorf("it took %v to end", took)
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	b, begun := newSleeper(t, "")
	spec := b.role("content")
	spec.Timeout = 3 * time.Second
	got := b.run(t.Context(), spec)
	for !isThere(begun) && spec.Timeout < scratch.WaitTimeout { // A busy machine takes longer to begin.
		spec.ID, spec.Timeout = spec.ID+"-again", 2*spec.Timeout
		got = b.run(t.Context(), spec)
	}
	wantOutcome(t, got, content.Failed, content.ReasonTimeout)
	want := fmt.Sprintf("the timeout of the watch is %s\nended in play [localhost], task [content : Sleep] (roles/content/tasks/main.yml:2)", spec.Timeout)
	if !strings.HasSuffix(got.Outcome.Message, want) {
		t.Errorf("got message %q, want %q at its end", got.Outcome.Message, want)
	}
	if took := got.Ended.Sub(got.Started); took > spec.Timeout+scratch.WaitTimeout {
		t.Errorf("it took %v to end", took)
	}
}

// newSleeper makes a role that sleeps; the file of the returned name tells that
// it has begun to.
func newSleeper(t *testing.T, first string) (*tidy, string) {
	t.Helper()
	begun := filepath.Join(t.TempDir(), "begun")
	script := strings.NewReplacer("%s", first, "{{ begun }}", begun).Replace(sleeper)
	b := newBench(t, map[string]string{"roles/content/tasks/main.yml": script})
	b.SkipFacts = true
	return b, begun
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func waitFor(ctx context.Context, path string) {
	for ctx.Err() == nil {
		if isThere(path) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

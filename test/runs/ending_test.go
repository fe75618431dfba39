package runs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/internal/jobevent"
)

func vaultEncrypt(t *testing.T, passwordFile, text string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(environment(t).Bin, "ansible-vault"), "encrypt_string", "--vault-password-file", passwordFile, text).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func TestFailures(t *testing.T) {
	tests := map[string]struct {
		tasks       string
		role        string
		wantReason  jobevent.Reason
		wantMessage string
	}{
		"a task that fails says what and why": {
			tasks:      "- name: Look for the Secret\n  ansible.builtin.fail: {msg: there is no Secret}\n",
			wantReason: jobevent.ReasonFailed, wantMessage: "there is no Secret",
		},
		"a syntax error is explained": {
			tasks:      "- name: Broken\n  ansible.builtin.debug: {msg: [}\n",
			wantReason: jobevent.ReasonFailed, wantMessage: "main.yml",
		},
		"a role that does not exist is named": {
			role:       "nowhere",
			wantReason: jobevent.ReasonFailed, wantMessage: "nowhere",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, map[string]string{"roles/content/tasks/main.yml": test.tasks})
			b.SkipFacts = true
			role := "content"
			if test.role != "" {
				role = test.role
			}
			got := b.run(t.Context(), b.role(role))
			if got.Outcome.Verdict != jobevent.Failed || !strings.Contains(got.Outcome.Message, test.wantMessage) {
				t.Errorf("got outcome %+v, want a failure whose message has %q", got.Outcome, test.wantMessage)
			}
			t.Log(got.Outcome.Reason, got.Outcome.Message)
		})
	}
}

// sleeper sleeps for a minute in a module that says that it has begun.
const sleeper = `
- name: Sleep
  ansible.builtin.shell: |
    %s
    touch '{{ begun }}'
    sleep 60 & wait
    sleep 60
  args: {executable: /bin/bash}
`

func TestEndedEarly(t *testing.T) {
	tests := map[string]struct {
		first       string // of the shell script
		timeout     time.Duration
		wantVerdict jobevent.Verdict
		wantReason  jobevent.Reason
		within      time.Duration
	}{
		"canceled while a module sleeps": {
			wantVerdict: jobevent.Canceled, wantReason: jobevent.ReasonCanceled, within: 2 * time.Second,
		},
		"canceled while a module ignores TERM": {
			first:       "trap '' TERM",
			wantVerdict: jobevent.Canceled, wantReason: jobevent.ReasonCanceled, within: 5 * time.Second,
		},
		"canceled while a daemon runs that nobody waits for": {
			first:       "setsid bash -c 'trap \"\" TERM; exec sleep 60' >/dev/null 2>&1 </dev/null &",
			wantVerdict: jobevent.Canceled, wantReason: jobevent.ReasonCanceled, within: 5 * time.Second,
		},
		"longer than its timeout": {
			timeout:     4 * time.Second,
			wantVerdict: jobevent.Failed, wantReason: jobevent.ReasonTimeout, within: 5 * time.Second,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			begun := filepath.Join(t.TempDir(), "begun")
			b := newBench(t, map[string]string{"roles/content/tasks/main.yml": strings.ReplaceAll(strings.Replace(sleeper, "%s", test.first, 1), "{{ begun }}", begun)})
			b.SkipFacts = true
			spec := b.role("content")
			spec.Timeout = test.timeout
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan time.Time, 1)
			go func() {
				waitFor(begun)
				if test.timeout == 0 {
					cancel()
				}
				ended <- time.Now()
			}()
			got := b.run(ctx, spec)
			wantOutcome(t, got, test.wantVerdict, test.wantReason)
			told := <-ended
			if test.timeout > 0 {
				told = got.Started.Add(test.timeout)
			}
			if took := got.Ended.Sub(told); took > test.within {
				t.Errorf("it took %v to end, want at most %v", took, test.within)
			} else {
				t.Logf("took %v", took)
			}
		})
	}
}

func waitFor(path string) {
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// An asynchronous task that nobody waits for does not outlive its run, and a
// run that ended well is not held up by it.
func TestAsyncTaskDoesNotOutliveItsRun(t *testing.T) {
	b := newBench(t, map[string]string{"roles/content/tasks/main.yml": `
- name: Begin
  ansible.builtin.command: sleep 60
  async: 120
  poll: 0
`})
	b.SkipFacts = true
	got := b.run(t.Context(), b.role("content"))
	wantOutcome(t, got, jobevent.Succeeded, jobevent.ReasonSuccessful)
	if took := got.Ended.Sub(got.Started); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
}

package runner

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/process/proctree"
	"github.com/ensign-operator/ensign/pkg/content"
)

// launcher starts runs itself unless there is a reason not to.
type launcher struct {
	why      string
	prepared [][]string
	started  []*exec.Cmd
}

func (l *launcher) Prepare(env []string) { l.prepared = append(l.prepared, env) }

func (l *launcher) Start(cmd *exec.Cmd) (leader proctree.Leader, why string) {
	l.started = append(l.started, cmd)
	if l.why != "" {
		return proctree.Leader{}, l.why
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return proctree.Leader{}, err.Error()
	}
	return proctree.Leader{PID: cmd.Process.Pid, Wait: func() int {
		_ = cmd.Wait() // The signal says how it ended.
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
			return -int(status.Signal())
		}
		return cmd.ProcessState.ExitCode()
	}}, ""
}

func TestRunsAreStarted(t *testing.T) {
	for why, test := range map[string]struct {
		launcher *launcher
		cold     bool
		asked    int
		warm     bool
	}{
		"by the launcher": {&launcher{}, false, 1, true},
		"in a new interpreter if the launcher refuses":     {&launcher{why: "variable TZ"}, false, 1, false},
		"in a new interpreter where the run is to be cold": {&launcher{}, true, 0, false},
	} {
		t.Run(why, func(t *testing.T) {
			b := newBench(t, "success")
			b.Launcher = test.launcher
			events := 0
			result := b.Run(t.Context(), spec(test.cold), func(jobevent.Event) { events++ })
			if result.Outcome.Verdict != content.Succeeded || result.Warm != test.warm || events != 2 {
				t.Errorf("got %+v, warm %t, after %d events", result.Outcome, result.Warm, events)
			}
			if len(test.launcher.started) != test.asked {
				t.Errorf("the launcher was asked for %v", test.launcher.started)
			}
		})
	}
}

func TestAWarmRunEndsAsAColdOneDoes(t *testing.T) {
	for fake, reason := range map[string]content.Reason{"crash": jobevent.ReasonNoStats, "killed": content.ReasonRunnerCrashed} {
		t.Run(fake, func(t *testing.T) {
			b := newBench(t, fake)
			b.Launcher = &launcher{}
			want(t, b.Run(t.Context(), someSpec(), ignore), content.Failed, reason)
		})
	}
	t.Run("canceled", func(t *testing.T) {
		b := newBench(t, "parent") // Its child has no mark.
		b.Launcher = &launcher{}
		result, _ := b.runUntilReady(someSpec())
		want(t, result, content.Canceled, content.ReasonCanceled)
		b.wantGone()
	})
}

func TestTheLauncherIsPreparedForTheRunsToCome(t *testing.T) {
	b := newBench(t, "success")
	b.Prepare() // Without a launcher there is nothing to prepare.
	l := &launcher{}
	b.Launcher = l
	b.Prepare()
	b.Run(t.Context(), spec(false), ignore)
	ofOneRun := []string{"JOB_ID=", "KUBECONFIG=", "K8S_AUTH_KUBECONFIG=", "ANSIBLE_LOCAL_TEMP="}
	if diff := cmp.Diff(without(l.prepared[0], ofOneRun), without(l.started[0].Env, ofOneRun)); diff != "" || len(l.prepared) != 1 {
		t.Errorf("prepared %d times, and not for the same environment: %s", len(l.prepared), diff)
	}
}

func spec(cold bool) Spec {
	s := someSpec()
	s.Cold = cold
	return s
}

func without(env, beginnings []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		return slices.ContainsFunc(beginnings, func(b string) bool { return len(entry) >= len(b) && entry[:len(b)] == b })
	})
}

func TestOnlyRunsThatMayBeWarmArePipelined(t *testing.T) {
	for why, test := range map[string]struct {
		launcher   Launcher
		cold, want bool
	}{
		"one that may be warm":    {&launcher{}, false, true},
		"one that is to be cold":  {&launcher{}, true, false},
		"one where all are cold":  {nil, false, false},
		"one of those to be cold": {nil, true, false},
	} {
		t.Run(why, func(t *testing.T) {
			b := newBench(t, "success")
			b.Launcher = test.launcher
			// An ansible.cfg of the machine would be the owner's choice.
			config := filepath.Join(t.TempDir(), "ansible.cfg")
			if err := os.WriteFile(config, []byte("[defaults]\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			b.Env = append(b.Env, "ANSIBLE_CONFIG="+config)
			var inventory []byte
			b.Ready = func(context.Context) (err error) {
				inventory, err = os.ReadFile(filepath.Join(b.runs, someSpec().UID, "run", "inventory", "hosts"))
				return err
			}
			if result := b.Run(t.Context(), spec(test.cold), ignore); result.Outcome.Verdict != content.Succeeded {
				t.Errorf("got %+v", result.Outcome)
			}
			if got := strings.Contains(string(inventory), "ansible_pipelining=True"); got != test.want {
				t.Errorf("got %t by %q", got, inventory)
			}
		})
	}
}

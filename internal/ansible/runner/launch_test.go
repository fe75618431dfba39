package runner

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
)

// launcher launches a program for each run, and reports that the run was warm.
type launcher struct {
	program                   string
	prepared, launched, ended [][]string
}

func (l *launcher) Prepare(env []string) { l.prepared = append(l.prepared, env) }

func (l *launcher) Launch(env []string) (program, why string) {
	l.launched = append(l.launched, env)
	return l.program, "some reason"
}

func (l *launcher) Ended(env []string) bool {
	l.ended = append(l.ended, env)
	return true
}

func TestRunsAreLaunched(t *testing.T) {
	for why, test := range map[string]struct {
		program        func(b *bench) string
		cold           bool
		launched, ends int
		warm           bool
	}{
		"by the program of the launcher":                           {func(b *bench) string { return b.Binary }, false, 1, 1, true},
		"by ansible-runner, where there is none for it":            {func(*bench) string { return "" }, false, 1, 0, false},
		"by ansible-runner, where that of the launcher is missing": {func(*bench) string { return "/nowhere/ansible-runner" }, false, 1, 1, false},
		"by ansible-runner, where the run is to be cold":           {func(b *bench) string { return b.Binary }, true, 0, 0, false},
	} {
		t.Run(why, func(t *testing.T) {
			b := newBench(t, "success")
			l := &launcher{program: test.program(b)}
			b.Launcher = l
			result := b.Run(t.Context(), spec(test.cold), ignore)
			if result.Outcome.Verdict != jobevent.Succeeded || result.Warm != test.warm {
				t.Errorf("got %+v, warm %t", result.Outcome, result.Warm)
			}
			if len(l.launched) != test.launched || len(l.ended) != test.ends {
				t.Errorf("%d launched, %d ended", len(l.launched), len(l.ended))
			}
			for i := range l.ended {
				if diff := cmp.Diff(l.launched[i], l.ended[i]); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestTheLauncherIsPreparedForTheRunsToCome(t *testing.T) {
	b := newBench(t, "success")
	b.Prepare() // Without a launcher there is nothing to prepare.
	l := &launcher{}
	b.Launcher = l
	b.Prepare()
	b.Run(t.Context(), spec(false), ignore)
	ofOneRun := []string{"JOB_ID=", "KUBECONFIG=", "K8S_AUTH_KUBECONFIG=", "ANSIBLE_LOCAL_TEMP="}
	if diff := cmp.Diff(without(l.prepared[0], ofOneRun), without(l.launched[0], ofOneRun)); diff != "" || len(l.prepared) != 1 {
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
			if result := b.Run(t.Context(), spec(test.cold), ignore); result.Outcome.Verdict != jobevent.Succeeded {
				t.Errorf("got %+v", result.Outcome)
			}
			if got := strings.Contains(string(inventory), "ansible_pipelining=True"); got != test.want {
				t.Errorf("got %t by %q", got, inventory)
			}
		})
	}
}

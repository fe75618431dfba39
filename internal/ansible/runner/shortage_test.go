package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
)

// flagged returns a runner whose messages name flags.
func flagged() *Runner {
	return &Runner{SettingName: func(field string) string {
		return map[string]string{"RunDir": "--run-dir", "ArtifactsMaxBytes": "--artifacts-max-bytes", "MaxConcurrentRuns": "--max-concurrent-runs"}[field]
	}}
}

func TestAProgramWithoutFlagsIsToldTheFields(t *testing.T) {
	r := &Runner{}
	for err, want := range map[error]string{
		syscall.ENOSPC: "; free some, let Options.ArtifactsMaxBytes keep less, or choose another disk by Options.RunDir",
		syscall.ENOMEM: ", or let fewer runs be live by Options.MaxConcurrentRuns",
	} {
		if got := r.finish(Result{}, r.addHint(crashed(err), jobevent.Summary{}, nil)).Outcome.Message; !strings.HasSuffix(got, want) {
			t.Errorf("want the end %q, got %q", want, got)
		}
	}
	if got := r.finish(Result{}, jobevent.ProcessExit{ExitCode: -9}).Outcome.Message; !strings.HasSuffix(got, "run fewer at once by Options.MaxConcurrentRuns") {
		t.Errorf("of a killed run: got %q", got)
	}
}

func TestWhatRanOutIsExplained(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "env/extravars", Err: syscall.ENOSPC}
	said := func(message string) jobevent.Summary {
		return jobevent.Summary{StatsSeen: true, Hosts: 1, Failures: 1, Failed: []jobevent.TaskFailure{{Message: message}}}
	}
	tests := map[string]struct {
		ending  jobevent.ProcessExit
		summary jobevent.Summary
		own     error
		want    []string // in the message, beside which nothing is said
		hint    bool
	}{
		"the disk is full before the run": {
			ending: crashed(fmt.Errorf("prepare: %w", full)), hint: true, want: []string{"no space left on device", "disk of the run directory", "--run-dir"},
		},
		"one of several errors": {
			ending: crashed(errors.Join(errors.New("first"), full)), hint: true, want: []string{"disk of the run directory"},
		},
		"a quota is used up": {
			ending: crashed(syscall.EDQUOT), hint: true, want: []string{"quota", "--run-dir"},
		},
		"the disk can only be read": {
			ending: crashed(syscall.EROFS), hint: true, want: []string{"can only be read", "--run-dir"},
		},
		"a file may not become larger": {
			ending: crashed(syscall.EFBIG), hint: true, want: []string{"ulimit -f"},
		},
		"too many files are open in the manager": {
			ending: crashed(fmt.Errorf("start: %w; is it installed there?", syscall.EMFILE)), hint: true, want: []string{"too many open files", "ulimit -n"},
		},
		"too many files are open in the machine": {
			ending: crashed(syscall.ENFILE), hint: true, want: []string{"fs.file-max"},
		},
		"no process can be started": {
			ending: crashed(fmt.Errorf("fork: %w", syscall.EAGAIN)), hint: true, want: []string{"pids"},
		},
		"no memory is left for one": {
			ending: crashed(syscall.ENOMEM), hint: true, want: []string{"memory"},
		},
		"this process could not write during a run that failed": {
			ending: jobevent.ProcessExit{ExitCode: 2}, summary: said("boom"), own: errors.Join(full), hint: true, want: []string{"boom", "disk of the run directory"},
		},
		"a task says so": {
			ending: jobevent.ProcessExit{ExitCode: 2}, summary: said("[Errno 28] No space left on device: b'/x'"), hint: true, want: []string{"may mean", "disk of the run directory"},
		},
		"a task has too many open files": {
			ending: jobevent.ProcessExit{ExitCode: 2}, summary: said("OSError: [Errno 24] Too many open files"), hint: true, want: []string{"may mean", "ulimit -n"},
		},
		"an unreachable host says so": {
			ending: jobevent.ProcessExit{ExitCode: 4}, summary: jobevent.Summary{StatsSeen: true, Hosts: 1, Unreachable: 1, UnreachableHosts: []jobevent.TaskFailure{{Message: "No space left on device"}}},
			hint: true, want: []string{"disk of the run directory"},
		},
		"a traceback says so": {
			ending: jobevent.ProcessExit{ExitCode: 1, Output: "OSError: [Errno 28] No space left on device\n"}, hint: true, want: []string{"before the run ended", "disk of the run directory"},
		},
		"nothing ran out": {
			ending: jobevent.ProcessExit{ExitCode: 2}, summary: said("boom"), own: fs.ErrNotExist, want: []string{"boom"},
		},
		"a role that writes to a disk of others": {
			ending: jobevent.ProcessExit{ExitCode: 2}, summary: said("Read-only file system: /etc/hosts"), want: []string{"/etc/hosts"},
		},
		"a runner that is not there": {
			ending: crashed(fs.ErrNotExist), want: []string{"file does not exist"},
		},
	}
	for why, test := range tests {
		t.Run(why, func(t *testing.T) {
			e := flagged().addHint(test.ending, test.summary, test.own)
			message := jobevent.DetermineOutcome(e, test.summary).Message
			for _, want := range test.want {
				if !strings.Contains(message, want) {
					t.Errorf("got message %q, want %q in it", message, want)
				}
			}
			if got := e.Hint != ""; got != test.hint || strings.Contains(message, "env/extravars") || strings.Contains(message, "installed") || len(e.Hint) >= 1<<10 {
				t.Errorf("got hint %q and message %q", e.Hint, message)
			}
		})
	}
}

func TestWhatRanOutDoesNotDependOnWhere(t *testing.T) {
	var messages []string
	for _, path := range []string{"run", "run/env/settings", ".trash-ABC"} {
		e := flagged().addHint(crashed(&fs.PathError{Op: "openat", Path: path, Err: syscall.ENOSPC}), jobevent.Summary{}, nil)
		messages = append(messages, jobevent.DetermineOutcome(e, jobevent.Summary{}).Message)
	}
	if diff := cmp.Diff([]string{messages[0], messages[0], messages[0]}, messages); diff != "" {
		t.Errorf("the same failure has several messages:\n%s", diff)
	}
}

func TestMemoryThatRanOutDuringARunIsTold(t *testing.T) {
	tests := map[string]struct {
		fake          string
		before, after uint64
		want          bool
	}{
		"a failed run during which the kernel killed": {"secrets", 3, 5, true},
		"a killed one": {"killed", 0, 1, true},
		"a failed run, where it killed before that":      {"secrets", 3, 3, false},
		"a run that came through has nothing to tell of": {"success", 0, 1, false},
	}
	for why, test := range tests {
		t.Run(why, func(t *testing.T) {
			b := newBench(t, test.fake)
			counts := []uint64{test.before, test.after}
			b.SettingName = flagged().SettingName
			b.OOMKills = func() (n uint64) { n, counts = counts[0], counts[1:]; return n }
			message := b.Run(t.Context(), someSpec(), ignore).Outcome.Message
			if got := strings.Contains(message, "oom_kill") && strings.Contains(message, "--max-concurrent-runs"); got != test.want {
				t.Errorf("got %q", message)
			}
		})
	}
}

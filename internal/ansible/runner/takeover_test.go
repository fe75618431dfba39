package runner

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
)

// killedManager starts a manager that runs the fake, and kills it once count
// processes of the run are ready. It returns the run directory and their pids.
func killedManager(t *testing.T, fake string, count int) (runs string, pids []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ready := filepath.Join(t.TempDir(), "ready")
	runs = filepath.Join(t.TempDir(), "runs")
	cmd := exec.Command(self)
	cmd.Env = []string{"FAKE=manager", "RUN=" + fake, "READY=" + ready, "RUNS=" + runs}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for len(pids) < count {
		time.Sleep(time.Millisecond)
		pids = strings.Fields(readyPids(ready))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the manager ended by itself")
	}
	return runs, pids
}

func TestTakeOverEndsWhatAKilledManagerLeft(t *testing.T) {
	tests := map[string]struct {
		fake  string
		count int
	}{
		"a run that heeds TERM": {"sleep", 1},
		"a run with a child that has another environment and ignores TERM": {"family", 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			runs, pids := killedManager(t, test.fake, test.count)
			var lines []string
			log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
			root, owner, err := TakeOver(runs, log)
			if err != nil {
				t.Fatal(err)
			}
			for _, pid := range pids {
				if alive(pid) {
					t.Errorf("process %s is left", pid)
				}
			}
			if _, err := os.Stat(filepath.Join(runs, someSpec().UID, "run")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the files of the run are left (%v)", err)
			}
			if len(lines) != 1 || !strings.Contains(lines[0], `"count"=`) {
				t.Errorf("got log %q, want one line with the number of processes", lines)
			}
			if err := errors.Join(owner.Close(), root.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Two managers of one directory never meet each other's runs.
func TestTakeOverOfADirectoryInUseEndsNothing(t *testing.T) {
	b := newBench(t, "sleep")
	var err error
	if err = b.Root.Close(); err != nil {
		t.Fatal(err)
	}
	if b.Root, b.Owner, err = TakeOver(b.runs, funcr.New(func(_, _ string) {}, funcr.Options{})); err != nil {
		t.Fatal(err)
	}
	result, _ := b.runUntilReadyAnd(someSpec(), func(pids string) {
		if _, _, err := TakeOver(b.runs, funcr.New(func(_, _ string) {}, funcr.Options{})); err == nil {
			t.Error("a second manager got the directory")
		}
		if !alive(strings.TrimSpace(pids)) {
			t.Error("the run was ended")
		}
	})
	want(t, result, "Canceled", "Canceled")
	if err := errors.Join(b.Owner.Close(), b.Root.Close()); err != nil {
		t.Error(err)
	}
}

// A run that somebody else ended once its permit was over came to nothing, also
// when that is found out only afterwards.
func TestARunWhosePermitEndedIsCanceled(t *testing.T) {
	tests := map[string]struct {
		fake          string
		during, after bool // when the permit ends: while it is ready, or when it is looked at after its end
		verdict       jobevent.Verdict
	}{
		"the permit ends while it runs":                       {fake: "stubborn", during: true, verdict: jobevent.Canceled},
		"it is killed, and only then the permit is looked at": {fake: "killed", after: true, verdict: jobevent.Canceled},
		"it is killed, and the permit holds":                  {fake: "killed", verdict: jobevent.Failed},
		"it succeeded nevertheless":                           {fake: "success", after: true, verdict: jobevent.Succeeded},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, test.fake)
			permit, end := context.WithCancelCause(t.Context())
			defer end(nil)
			over := errors.New("over")
			looks := 0
			b.RunContext = func() context.Context {
				if looks++; looks == 1 {
					return permit
				}
				if test.after {
					end(over)
				}
				return t.Context() // another one, as after a renewal
			}
			if test.during {
				go func() {
					b.awaitReady(t.Context())
					end(over)
				}()
			}
			if got := b.Run(t.Context(), someSpec(), ignore); got.Outcome.Verdict != test.verdict {
				t.Errorf("got outcome %+v, want %s", got.Outcome, test.verdict)
			}
		})
	}
}

func TestNothingIsStartedWithoutAPermit(t *testing.T) {
	b := newBench(t, "")
	b.Python = "/nowhere" // An attempt to start it would show.
	over, end := context.WithCancelCause(t.Context())
	end(errors.New("over"))
	b.RunContext = func() context.Context { return over }
	want(t, b.Run(t.Context(), someSpec(), ignore), jobevent.Canceled, jobevent.ReasonCanceled)
}

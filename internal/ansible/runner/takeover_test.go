package runner

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/ensign-operator/ensign/internal/process"
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
		"a run with a child that has another environment and ignores TERM": {"parent", 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			runs, pids := killedManager(t, test.fake, test.count)
			var lines []string
			log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
			root, _, err := process.TakeOver(runs, log)
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
			if err := root.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Two managers of one directory never end each other's runs.
func TestTakeOverOfADirectoryInUseEndsNothing(t *testing.T) {
	b := newBench(t, "sleep")
	var err error
	if err = b.Root.Close(); err != nil {
		t.Fatal(err)
	}
	if b.Root, b.Reaper, err = process.TakeOver(b.runs, funcr.New(func(_, _ string) {}, funcr.Options{})); err != nil {
		t.Fatal(err)
	}
	result, _ := b.runUntilReadyAnd(someSpec(), func(pids string) {
		if _, _, err := process.TakeOver(b.runs, funcr.New(func(_, _ string) {}, funcr.Options{})); err == nil {
			t.Error("a second manager got the directory")
		}
		if !alive(strings.TrimSpace(pids)) {
			t.Error("the run was ended")
		}
	})
	want(t, result, "Canceled", "Canceled")
	if err := b.Root.Close(); err != nil {
		t.Error(err)
	}
}

package stub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// The test binary plays ansible-runner and ansible-playbook.
func TestMain(m *testing.M) {
	if os.Getenv(DirVariable) != "" {
		scratch.Leave(Main())
	}
	os.Exit(m.Run())
}

// command is the one by which a manager starts a run.
func command(t *testing.T, dir string, script Script) *exec.Cmd {
	t.Helper()
	variables, err := json.Marshal(map[string]any{"_g_io_widget": map[string]any{
		"metadata": map[string]any{"uid": "u", "generation": 3}, "spec": map[string]any{"play": script},
	}})
	if err != nil {
		t.Fatal(err)
	}
	scratch.Write(t, dir, map[string]string{"run/env/extravars": string(variables), "run/kubeconfig": "k"})
	bin := filepath.Join(t.TempDir(), "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ansible-runner", "ansible-playbook"} {
		if err := os.Symlink(os.Args[0], filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(bin, "ansible-runner"), "run", filepath.Join(dir, "run"), "--json", "--ident=r1", "-p", "/p/play.yml")
	cmd.Env = []string{"PATH=" + bin, "JOB_ID=42", "KUBECONFIG=" + filepath.Join(dir, "run", "kubeconfig"), DirVariable + "=" + dir}
	return cmd
}

// A failure that is none would show nothing.
func TestScriptsComeToTheirEnd(t *testing.T) {
	for name, test := range map[string]struct {
		failures     []Failure
		wantExitZero bool
	}{
		"a failed task":                       {[]Failure{FailedTask, FailedTask}, false},
		"no stats, exit code 0":               {[]Failure{NoStats}, true},
		"another's stats, exit code 0":        {[]Failure{Forgery}, true},
		"a failure in the stats, exit code 0": {[]Failure{FailedStats}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for n := range len(test.failures) + 1 {
				cmd := command(t, dir, Script{Failures: test.failures})
				out, err := cmd.Output()
				var summary jobevent.Summary
				if err := jobevent.Decode(bytes.NewReader(out), jobevent.Handler{Event: summary.Fold}); err != nil {
					t.Fatal(err)
				}
				succeeds := n == len(test.failures)
				if (err == nil) != (succeeds || test.wantExitZero) {
					t.Errorf("run %d: %v", n, err)
				}
				got := jobevent.Judge(jobevent.Ending{ExitCode: cmd.ProcessState.ExitCode(), Cause: jobevent.Exited}, summary).Verdict
				if (got == jobevent.Succeeded) != succeeds {
					t.Errorf("run %d: %s", n, got)
				}
			}
		})
	}
}

func TestARunEndsWithItsPlaybookOnTermAndWithoutItOnKill(t *testing.T) {
	for name, test := range map[string]struct {
		signal    syscall.Signal
		wantAlive bool
	}{
		"TERM": {syscall.SIGTERM, false},
		"KILL": {syscall.SIGKILL, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			held, release := make(chan Announcement, 1), make(chan struct{})
			stage, err := OpenStage(dir, func(a Announcement) {
				if a.Phase == MidTask {
					held <- a
					<-release
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = stage.Close() }()
			cmd := command(t, dir, Script{})
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			playbook := (<-held).Record.PID
			if err := cmd.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil {
				t.Error("the run ended well")
			}
			if alive := syscall.Kill(playbook, 0) == nil; alive != test.wantAlive {
				t.Errorf("ansible-playbook is alive: %v, want %v", alive, test.wantAlive)
			}
			close(release)
			for syscall.Kill(playbook, 0) == nil && !zombie(playbook) {
				<-time.After(time.Millisecond)
			}
		})
	}
}

// zombie is true for a process that waits for its parent, which is not the test.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestASecondLiveRunIsToldOf(t *testing.T) {
	dir, got := t.TempDir(), []bool{}
	for _, uid := range []string{"u", "u", "v"} {
		alone, err := enter(dir, uid)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, alone)
	}
	if diff := cmp.Diff([]bool{true, false, true}, got); diff != "" {
		t.Error(diff)
	}
}

// A reader may come between the parts of a line that reach the file one after the other.
func TestALineOfTheJournalThatIsBeingWrittenIsNotThereYet(t *testing.T) {
	dir := t.TempDir()
	if err := (Record{What: Started}).Write(dir); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, journalName))
	if err != nil || len(files) != 1 {
		t.Fatalf("got %q (error %v)", files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], append(whole, whole[:len(whole)/2]...), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadJournal(dir); err != nil || len(got) != 1 {
		t.Errorf("got %v (error %v)", got, err)
	}
}

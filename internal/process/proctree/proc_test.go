package proctree

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestReadProc(t *testing.T) {
	self, err := readProc(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	// The session is 0 where its leader lives outside of this PID namespace.
	session, err := unix.Getsid(0)
	if err != nil {
		t.Fatal(err)
	}
	if self.pid != os.Getpid() || self.parent != os.Getppid() || self.started == 0 || self.session != session || self.zombie {
		t.Errorf("got %+v, want session %d", self, session)
	}
	if _, err := readProc(1 << 30); err == nil {
		t.Error("got no error for a process that can't exist")
	}
	if table := readTable(); !slices.Contains(table, self) {
		t.Error("this process is not in the process table")
	}
}

func TestParseStat(t *testing.T) {
	const rest = " 20 30 40 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 "
	tests := map[string]struct {
		stat string
		want proc
	}{
		"a program's name may hold what separates fields": {
			stat: "7 (a) Z (b c) S" + rest + "1 0 1234 0",
			want: proc{identity: identity{7, 1234}, parent: 20, session: 40},
		},
		"a program of which one thread is left is a zombie once that has ended": {
			stat: "7 (a) Z" + rest + "1 0 1234 0",
			want: proc{identity: identity{7, 1234}, parent: 20, session: 40, zombie: true},
		},
		"a stopped program": {
			stat: "7 (a) T" + rest + "1 0 1234 0",
			want: proc{identity: identity{7, 1234}, parent: 20, session: 40, stopped: true},
		},
		"a program whose first thread has ended lives on in the others": {
			stat: "7 (a) Z" + rest + "2 0 1234 0",
			want: proc{identity: identity{7, 1234}, parent: 20, session: 40},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat(7, []byte(test.stat))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(proc{}, identity{})); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, broken := range []string{"", "7 (a", "7 (a) S 1 2", "7 (a) S x 30 40 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 1234"} {
		if got, err := parseStat(7, []byte(broken)); err == nil {
			t.Errorf("%q: got %+v and no error", broken, got)
		}
	}
}

// A process table that cannot be read for want of a descriptor is not empty.
func TestProcessesAreEndedWhileNoFileCanBeOpened(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "FAKE=crowded", "READY="+filepath.Join(t.TempDir(), "ready"))
	out, err := cmd.CombinedOutput()
	// A parent that TERM ends, and its child that KILL ends.
	if got, want := string(out), "2 0 -15\n"; err != nil || got != want {
		t.Errorf("got %q (error %v), want %q", got, err, want)
	}
}

func TestSendSparesAnotherProcessOfThatID(t *testing.T) {
	cmd := exec.Command("/bin/sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ours, err := readProc(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	other := ours.identity
	other.started--
	if err := other.send(syscall.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("got error %v, want one that says that the process is gone", err)
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the other process was hit: %v", err)
	}
	if err := ours.send(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process was not killed")
	}
}

// A process has no environment for a moment, while the kernel puts its program in the place
// of another one.
func TestAProcessIsFoundByItsMarkFromItsStartOn(t *testing.T) {
	const times = 500
	for i := range times {
		mark := fmt.Sprintf("MARK=%d", i)
		cmd := exec.Command("/bin/sleep", "60")
		cmd.Env = []string{mark}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		found := environHasAny(cmd.Process.Pid, []string{mark})
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // It is killed.
		if !found {
			t.Fatalf("process %d of %d was not found", i, times)
		}
	}
}

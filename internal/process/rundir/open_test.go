package rundir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A predecessor's processes are ended before their directories change, and never those of a
// manager that is alive.
func TestTakeOverEndsProcessesBetweenLockAndClearing(t *testing.T) {
	base := t.TempDir()
	path, link := filepath.Join(base, "real", "runs"), filepath.Join(base, "link")
	writeAll(t, map[string]string{filepath.Join(path, uid, "run", "kubeconfig"): "token"})
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	var calls []string
	r, err := TakeOver(filepath.Join(link, "runs"), func(got string) {
		calls = append(calls, got)
		if _, err := os.Stat(filepath.Join(got, uid, "run", "kubeconfig")); err != nil {
			t.Errorf("the files of a run went before its processes: %v", err)
		}
		if _, err := TakeOver(path, func(string) { calls = append(calls, "of a second manager") }); err == nil {
			t.Error("a second manager got the directory")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if !slices.Equal(calls, []string{path}) || r.Path() != path {
		t.Errorf("got calls %q and path %q, want one call with the path without links, %q", calls, r.Path(), path)
	}
	if _, err := os.Stat(filepath.Join(path, uid, "run")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the files of a run are left (%v)", err)
	}
}

// Some network file systems have no locks; the error must not blame another manager.
func TestOnlyALockThatIsHeldTellsOfAnotherManager(t *testing.T) {
	for err, want := range map[error]string{syscall.EWOULDBLOCK: "another manager", syscall.ENOLCK: "can't be locked", syscall.ENOSYS: "can't be locked"} {
		if got := explainLock(err, ""); !errors.Is(got, err) || !strings.Contains(got.Error(), want) {
			t.Errorf("got error %v for %v, want one with %q", got, err, want)
		}
	}
}

// Whoever gives two managers one directory, wants to know where the other one is.
func TestALockThatIsHeldNamesItsHolder(t *testing.T) {
	r, _ := open(t)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("another manager (process %d on %s);", os.Getpid(), host)
	if got := explainLock(syscall.EWOULDBLOCK, holderOf(r.lock)); !strings.Contains(got.Error(), want) {
		t.Errorf("got %v, want %q", got, want)
	}
}

// A process that a killed manager was starting holds the lock until it executes its program.
func TestAKilledPredecessorsLockIsWaitedFor(t *testing.T) {
	r, path := open(t)
	var next *Root
	opened := make(chan error)
	go func() {
		var err error
		next, err = Open(path)
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Fatalf("a directory was opened that is in use: %v", err)
	case <-time.After(5 * lockInterval):
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

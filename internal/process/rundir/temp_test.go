package rundir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// tooLong is the name of a run directory in which no sockets fit.
var tooLong = strings.Repeat("a", maxTempPath)

// openIn opens a run directory while TMPDIR is temp.
func openIn(t *testing.T, path, temp string) *Root {
	t.Helper()
	t.Setenv("TMPDIR", temp)
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() }) // A test may have closed it already.
	return r
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func TestTheSharedTemporaryDirectoryIsShortAndPrivate(t *testing.T) {
	base, system := scratch.Short(t), scratch.Short(t)
	fits := maxTempPath - len(base) - len("//.tmp")
	for length, inside := range map[int]bool{fits: true, fits + 1: false} {
		path := filepath.Join(base, strings.Repeat("a", length))
		r := openIn(t, path, system)
		temp := prepare(t, r, "run", Inputs{}).SharedTemp
		if inside && temp != filepath.Join(path, tempName) || !inside && filepath.Dir(temp) != system || len(temp) > maxTempPath {
			t.Errorf("got %q for a name of %d bytes", temp, length)
		}
		if mode := tree(t, temp)["."]; mode != "drwx------" {
			t.Errorf("%q has mode %s", temp, mode)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if left := entries(t, system); len(left) > 0 {
			t.Errorf("%q is left", left)
		}
	}
}

// What another user has prepared has another name, whatever the user knows.
func TestNobodyKnowsTheTemporaryDirectoryBefore(t *testing.T) {
	path, system := filepath.Join(scratch.Short(t), tooLong), scratch.Short(t)
	seen := map[string]bool{}
	for range 3 {
		r := openIn(t, path, system)
		if seen[r.SharedTemp()] {
			t.Errorf("got %q again", r.SharedTemp())
		}
		seen[r.SharedTemp()] = true
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestASuccessorRemovesWhatAKilledManagerHadElsewhere(t *testing.T) {
	path, system := filepath.Join(scratch.Short(t), tooLong), scratch.Short(t)
	killed := openIn(t, path, system)
	writeAll(t, map[string]string{filepath.Join(killed.SharedTemp(), "payload", "file"): ""})
	if err := killed.lock.Close(); err != nil { // The kernel does this, and nothing else.
		t.Fatal(err)
	}
	next := openIn(t, path, system)
	if diff := cmp.Diff([]string{filepath.Base(next.SharedTemp())}, entries(t, system)); diff != "" {
		t.Errorf("there is something else (-want +got):\n%s", diff)
	}
}

// The link may be stale or point to anything; only what a manager made goes with it.
func TestWhatNoManagerMadeElsewhereStays(t *testing.T) {
	path, system := filepath.Join(scratch.Short(t), tooLong), scratch.Short(t)
	theirs := filepath.Join(system, "theirs")
	open := filepath.Join(system, "ensign-"+strings.Repeat("A", 26)) // Others can write to it.
	writeAll(t, map[string]string{filepath.Join(theirs, "file"): "", filepath.Join(open, "file"): ""})
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{theirs, open, filepath.Join(system, "ensign-"+strings.Repeat("B", 26))} {
		r := openIn(t, path, system)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(path, tempName)); err != nil {
			t.Fatal(err)
		}
	}
	if err := openIn(t, path, system).Close(); err != nil {
		t.Error(err)
	}
	if !exists(filepath.Join(theirs, "file")) || !exists(filepath.Join(open, "file")) {
		t.Errorf("%q is left", entries(t, system))
	}
}

func TestARunDirectoryIsRefusedWhereNoTemporaryDirectoryIsSafe(t *testing.T) {
	path, system := filepath.Join(scratch.Short(t), tooLong), scratch.Short(t)
	if err := os.Chmod(system, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", system)
	if r, err := Open(path); err == nil || !strings.Contains(err.Error(), "sticky") || !strings.Contains(err.Error(), "choose a run directory") {
		t.Errorf("got %v, error %v", r, err)
	}
	if left := entries(t, system); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
	if err := os.Chmod(system, os.ModeSticky|0o777); err != nil {
		t.Fatal(err)
	}
	openIn(t, path, system)
}

func TestATemporaryDirectoryOfTheSystemMayBeTooLongItself(t *testing.T) {
	long := filepath.Join(scratch.Short(t), tooLong)
	r := openIn(t, long, long)
	if filepath.Dir(r.SharedTemp()) != systemTemp {
		t.Errorf("got %q", r.SharedTemp())
	}
}

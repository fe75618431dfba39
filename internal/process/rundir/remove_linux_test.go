package rundir

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// withoutPrivileges makes file modes effective for the rest of the test, even for root: the
// test's thread drops the capabilities that override them, and ends with the test.
func withoutPrivileges(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		t.Fatal(err)
	}
	sets[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	if err := unix.Capset(&header, &sets[0]); err != nil {
		t.Fatal(err)
	}
}

// readOnly makes a directory with a file below path, and removes the write permission of
// both, as caches of downloads do.
func readOnly(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	outer, inner := filepath.Join(path, "cache"), filepath.Join(path, "cache", "module")
	writeAll(t, map[string]string{filepath.Join(inner, "file"): "", filepath.Join(outer, "file"): ""})
	if err := errors.Join(os.Chmod(inner, mode), os.Chmod(outer, mode)); err != nil {
		t.Fatal(err)
	}
}

func TestDirectoriesThatMayNotBeWrittenToAreRemoved(t *testing.T) {
	for what, mode := range map[string]os.FileMode{"read only": 0o500, "not even to be looked into": 0} {
		t.Run(what, func(t *testing.T) {
			withoutPrivileges(t)
			r, path := open(t)
			d := prepare(t, r, "run-1", Inputs{})
			outside := filepath.Join(t.TempDir(), "outside")
			readOnly(t, outside, 0o700)
			if err := os.Symlink(outside, filepath.Join(d.Project, "link")); err != nil {
				t.Fatal(err)
			}
			readOnly(t, d.Project, mode)
			readOnly(t, filepath.Join(path, tempName), mode)
			if err := os.Chmod(d.Private, mode); err != nil {
				t.Fatal(err)
			}
			closeDir(t, d, 0)
			want := map[string]string{".": "drwx------", ".lock": "-rw------- " + holderOf(r.lock) + "\n", ".tmp": "drwx------", uid: "drwx------", uid + "/artifacts": "drwx------"}
			got := tree(t, path)
			delete(got, filepath.Join(uid, artifactsName, d.artifact))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("left behind by a run (-want +got):\n%s", diff)
			}
			if !exists(filepath.Join(outside, "cache", "file")) {
				t.Error("a link was followed")
			}
			readOnly(t, filepath.Join(path, uid, artifactsName), mode)
			if err := r.Remove(uid); err != nil {
				t.Error(err)
			}
		})
	}
}

// Otherwise a manager could never start in the directory of its predecessor.
func TestTakeOverRemovesWhatMayNotBeWrittenTo(t *testing.T) {
	withoutPrivileges(t)
	r, path := open(t)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{uid + "/run/project", uid + "/" + trashPrefix + "x", trashPrefix + "y", tempName} {
		readOnly(t, filepath.Join(path, name), 0o500)
	}
	again, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	want := map[string]string{".": "drwx------", ".lock": "-rw------- " + holderOf(again.lock) + "\n", ".tmp": "drwx------", uid: "drwx------"}
	if diff := cmp.Diff(want, tree(t, path)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

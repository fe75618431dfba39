package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzNames tries UIDs, run ids and names of artifacts. Whatever they are, and whatever
// entries exist already, the package must not touch anything outside of ROOT, and inside of
// ROOT only the entries with these names.
func FuzzNames(f *testing.F) {
	f.Add("6f1c2d34-0000-4000-8000-000000000001", "run-1", "stdout", false)
	outer := f.TempDir()
	beside := filepath.Join(outer, "beside")
	f.Fuzz(func(t *testing.T, uid, id, artifact string, link bool) {
		path := filepath.Join(outer, "root")
		t.Cleanup(func() { removeAll(t, path, beside) })
		if err := errors.Join(os.MkdirAll(beside, 0o700), os.WriteFile(filepath.Join(beside, "file"), []byte("mine"), 0o600)); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}()
		plain := validName.MatchString(uid) && validName.MatchString(id) && filepath.Base(uid) == uid && filepath.IsLocal(uid)
		if link && plain {
			if err := os.Symlink(beside, filepath.Join(path, uid)); err != nil {
				t.Fatal(err)
			}
		}
		d, err := r.Prepare(uid, id, Inputs{ExtraVars: []byte("\t\n{}\n")})
		if (err == nil) != plain {
			t.Fatalf("UID %q, run %q: %v", uid, id, err)
		}
		if err == nil {
			useDir(t, d, filepath.Join(path, uid), artifact)
		}
		if _, err := r.Sweep(func(string) bool { return true }); err != nil {
			t.Error(err)
		}
		if err := r.Remove(uid); (err == nil) != validName.MatchString(uid) {
			t.Errorf("remove %q: %v", uid, err)
		}
		checkBeside(t, outer, path)
	})
}

func useDir(t *testing.T, d *Dir, home, artifact string) {
	t.Helper()
	for _, path := range []string{d.Private, d.Project, d.Output, d.Inventory, d.Kubeconfig, d.Temp} {
		if !strings.HasPrefix(path, home+string(filepath.Separator)+"run") || filepath.Clean(path) != path {
			t.Errorf("%q is not below %q", path, home)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	file, err := d.Create(artifact)
	if (err == nil) != validName.MatchString(artifact) {
		t.Errorf("artifact %q: %v", artifact, err)
	}
	if err == nil {
		if made, _ := filepath.Glob(filepath.Join(home, artifactsName, "*", artifact)); len(made) != 1 {
			t.Errorf("artifact %q became %q", artifact, made)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := d.Close(1); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(home)
	if err != nil || len(entries) != 1 || entries[0].Name() != artifactsName {
		t.Errorf("what is left of a run: %v, %v", entries, err)
	}
}

// checkBeside checks that only the root's own files are left.
func checkBeside(t *testing.T, outer, path string) {
	t.Helper()
	var found []string
	err := filepath.WalkDir(outer, func(at string, _ fs.DirEntry, err error) error {
		if at != outer && !strings.HasPrefix(at, path+string(filepath.Separator)+".") {
			found = append(found, strings.TrimPrefix(at, outer))
		}
		return err
	})
	if got := strings.Join(found, " "); err != nil || got != "/beside /beside/file /root" {
		t.Errorf("there is now %s, %v", got, err)
	}
	if text, err := os.ReadFile(filepath.Join(outer, "beside", "file")); err != nil || string(text) != "mine" {
		t.Errorf("the file beside the root holds %q, %v", text, err)
	}
}

func removeAll(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.RemoveAll(path); err != nil {
			t.Error(err)
		}
	}
}

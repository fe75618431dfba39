package program

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestProvide(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "program")
	path, err := Provide(dir)
	if err != nil || path != filepath.Join(dir, Name) {
		t.Fatalf("got %q, error %v", path, err)
	}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("others may use %s: %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What is as it should be stays: the server for warm runs ends when what it has imported changes.
func TestProvideReplacesOnlyWhatIsDamaged(t *testing.T) {
	dir := t.TempDir()
	if _, err := Provide(dir); err != nil {
		t.Fatal(err)
	}
	damaged, gone, whole := filepath.Join(dir, Name), filepath.Join(dir, "ensign_events.py"), filepath.Join(dir, guard)
	longAgo := time.Unix(1e9, 0)
	if err := errors.Join(os.WriteFile(damaged, nil, 0o600), os.Remove(gone), os.Chtimes(whole, longAgo, longAgo)); err != nil {
		t.Fatal(err)
	}
	if _, err := Provide(dir); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{damaged, gone} {
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("got %v (error %v), want a file that is not empty", info, err)
		}
	}
	if info, err := os.Stat(whole); err != nil || !info.ModTime().Equal(longAgo) {
		t.Errorf("got %v (error %v), want the directory untouched", info, err)
	}
}

func TestProvideRefusesAPathThatPythonWouldTakeForTwo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a:b")
	if path, err := Provide(dir); err == nil {
		t.Errorf("got %q, want an error", path)
	}
}

func TestPythonPath(t *testing.T) {
	for further, want := range map[string]string{"": "/p/guard", "/a:/b": "/p/guard:/a:/b"} {
		if got := PythonPath("/p", further); got != want {
			t.Errorf("got %q for %q, want %q", got, further, want)
		}
	}
}

package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/files"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

const largest = 1 << 20

// tree makes a small role and gives its directory.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "tasks/main.yml", "- debug:\n")
	write(t, dir, "files/script.sh", "true\n")
	write(t, dir, "files/large", strings.Repeat("x", largest+1))
	if err := os.Chtimes(filepath.Join(dir, "files/large"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	scratch.Write(t, dir, map[string]string{name: text})
}

func digest(t *testing.T, paths ...string) string {
	t.Helper()
	sum, err := files.Digest(paths...)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestWhatChangesADigest(t *testing.T) {
	before := digest(t, tree(t))
	for name, test := range map[string]struct {
		change func(dir string) error
		same   bool
	}{
		"nothing, in another place": {func(string) error { return nil }, true},
		"a file's text":             {func(dir string) error { write(t, dir, "tasks/main.yml", "- fail:\n"); return nil }, false},
		"a further file":            {func(dir string) error { write(t, dir, "tasks/more.yml", ""); return nil }, false},
		"a file's name": {func(dir string) error {
			return os.Rename(filepath.Join(dir, "tasks/main.yml"), filepath.Join(dir, "tasks/other.yml"))
		}, false},
		"a file that moves to another directory": {func(dir string) error {
			return os.Rename(filepath.Join(dir, "tasks/main.yml"), filepath.Join(dir, "files/main.yml"))
		}, false},
		"a file that goes":                {func(dir string) error { return os.Remove(filepath.Join(dir, "tasks/main.yml")) }, false},
		"an empty directory":              {func(dir string) error { return os.Mkdir(filepath.Join(dir, "library"), 0o700) }, false},
		"a file that can be executed now": {func(dir string) error { return os.Chmod(filepath.Join(dir, "files/script.sh"), 0o700) }, false},
		"a time alone": {func(dir string) error {
			return os.Chtimes(filepath.Join(dir, "tasks/main.yml"), time.Unix(9, 0), time.Unix(9, 0))
		}, true},
		"the time of a large file, which is not read": {func(dir string) error {
			return os.Chtimes(filepath.Join(dir, "files/large"), time.Unix(9, 0), time.Unix(9, 0))
		}, false},
		"a hidden file":   {func(dir string) error { write(t, dir, ".git/index", "x"); return nil }, true},
		"compiled Python": {func(dir string) error { write(t, dir, "tasks/__pycache__/x.pyc", "x"); return nil }, true},
		"a link to a directory above, once": {func(dir string) error {
			return os.Symlink(dir, filepath.Join(dir, "files/loop"))
		}, true},
		"a link without a target": {func(dir string) error {
			return os.Symlink("nowhere", filepath.Join(dir, "files/link"))
		}, true},
		"a link to a file, which counts as the file": {func(dir string) error {
			return os.Symlink("script.sh", filepath.Join(dir, "files/link"))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t)
			if err := test.change(dir); err != nil {
				t.Fatal(err)
			}
			if same := digest(t, dir) == before; same != test.same {
				t.Errorf("want same %t, got %t", test.same, same)
			}
		})
	}
}

func TestTheTextBehindALinkCounts(t *testing.T) {
	dir, mounted := t.TempDir(), t.TempDir()
	write(t, mounted, "v1/main.yml", "one")
	if err := os.Symlink(filepath.Join(mounted, "v1/main.yml"), filepath.Join(dir, "main.yml")); err != nil {
		t.Fatal(err)
	}
	before := digest(t, dir)
	write(t, mounted, "v1/main.yml", "two")
	if digest(t, dir) == before {
		t.Error("a file behind a link changed, and the digest did not")
	}
}

func TestSeveralPaths(t *testing.T) {
	a, b := tree(t), t.TempDir()
	write(t, b, "play.yml", "[]")
	if digest(t, a, b) != digest(t, b, a, a) {
		t.Error("order and repetition of the paths must not matter")
	}
	if digest(t, a, b) == digest(t, a) {
		t.Error("the second path does not count")
	}
	if digest(t, a, filepath.Join(b, "none")) == digest(t, a, b) {
		t.Error("a missing path counts as one that is there")
	}
	if digest(t, filepath.Join(b, "play.yml")) == digest(t, b) {
		t.Error("a file counts as its directory")
	}
}

func TestUnreadableContentIsAnError(t *testing.T) {
	if _, err := files.Digest("a\x00b"); err == nil {
		t.Error("got no error")
	}
}

package files_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/ansible/files"
)

// trees makes two trees of collections: of the first of them, a.b was installed
// and a.c is a checkout.
func trees(t *testing.T) (first, second string) {
	t.Helper()
	dir := t.TempDir()
	first, second = filepath.Join(dir, "one"), filepath.Join(dir, "two")
	write(t, first, "a/b/MANIFEST.json", `{"version": "1.0.0"}`)
	write(t, first, "a/b/plugins/x.py", "x")
	write(t, first, "a/c/galaxy.yml", "version: 1.0.0")
	write(t, first, "a/c/plugins/x.py", "x")
	write(t, second, "a/b/MANIFEST.json", `{"version": "2.0.0"}`)
	write(t, second, "d/e/MANIFEST.json", `{"version": "1.0.0"}`)
	return first, second
}

func TestWhatChangesTheDigestOfCollections(t *testing.T) {
	first, second := trees(t)
	before := files.DigestCollections(first, second)
	for name, test := range map[string]struct {
		change func(t *testing.T, first, second string)
		same   bool
	}{
		"nothing, in another place":                                 {func(*testing.T, string, string) {}, true},
		"another version":                                           {func(t *testing.T, first, _ string) { write(t, first, "a/b/MANIFEST.json", "{}") }, false},
		"another version in the second tree":                        {func(t *testing.T, _, second string) { write(t, second, "d/e/MANIFEST.json", "{}") }, false},
		"one that the first tree hides":                             {func(t *testing.T, _, second string) { write(t, second, "a/b/MANIFEST.json", "{}") }, true},
		"a file of an installed one, which its manifest stands for": {func(t *testing.T, first, _ string) { write(t, first, "a/b/plugins/x.py", "y") }, true},
		"a file of a checkout":                                      {func(t *testing.T, first, _ string) { write(t, first, "a/c/plugins/x.py", "y") }, false},
		"an installed one that becomes a checkout":                  {func(t *testing.T, first, _ string) { remove(t, filepath.Join(first, "a/b/MANIFEST.json")) }, false},
		"one more": {func(t *testing.T, first, _ string) { write(t, first, "a/new/MANIFEST.json", "{}") }, false},
		"one less, which shows the second tree's": {func(t *testing.T, first, _ string) { remove(t, filepath.Join(first, "a/b")) }, false},
		"what ansible-galaxy and Python leave beside them": {func(t *testing.T, first, _ string) {
			write(t, first, "a.b-1.0.0.info/GALAXY.yml", "x")
			write(t, first, "a/__pycache__/x.pyc", "x")
			write(t, first, "a/.git/HEAD", "x")
			write(t, first, "a/notes", "x")
		}, true},
		"a link to a collection, which counts as one": {func(t *testing.T, first, second string) {
			if err := os.Symlink(filepath.Join(second, "d/e"), filepath.Join(first, "a/linked")); err != nil {
				t.Fatal(err)
			}
		}, false},
		"a link without a target": {func(t *testing.T, first, _ string) {
			if err := os.Symlink("nowhere", filepath.Join(first, "a/linked")); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := trees(t)
			test.change(t, first, second)
			if same := files.DigestCollections(first, second) == before; same != test.same {
				t.Errorf("want same %t, got %t", test.same, same)
			}
		})
	}
	if files.DigestCollections(second, first) == before {
		t.Error("the order of the trees says which version is used, and does not count")
	}
	if files.DigestCollections(first, filepath.Join(first, "none"), second) != before {
		t.Error("a tree that is not there counts")
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// A hundred collections, as in the package "ansible".
func BenchmarkCollections(b *testing.B) {
	tree := b.TempDir()
	for i := range 100 {
		dir := filepath.Join(tree, "n", "c"+strconv.Itoa(i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "MANIFEST.json"), []byte(strings.Repeat("x", 2000)), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		files.DigestCollections(tree)
	}
}

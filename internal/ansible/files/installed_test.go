package files_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/ansible/files"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	one, two, three := filepath.Join(dir, "1"), filepath.Join(dir, "2"), filepath.Join(dir, "3")
	write(t, one, "a/b/MANIFEST.json", `{"collection_info": {"version": "1.2.3"}}`)
	write(t, two, "a/b/galaxy.yml", "version: 1.0.0")
	write(t, three, "a/b/MANIFEST.json", "no JSON")
	write(t, three, "a/c", "a file")
	want := []files.InstalledCollection{{Dir: filepath.Join(two, "a/b")}, {Dir: filepath.Join(one, "a/b"), Version: "1.2.3"}, {Dir: filepath.Join(three, "a/b")}}
	if diff := cmp.Diff(want, files.FindCollection("a.b", two, filepath.Join(dir, "none"), one, three)); diff != "" {
		t.Error(diff)
	}
	if got := files.FindCollection("a.c", three); got != nil {
		t.Errorf("a file is taken for a collection: %v", got)
	}
}

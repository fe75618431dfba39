package files

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

func TestWhatGitIgnores(t *testing.T) {
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{
		".gitignore":         "# a comment\n*.log\n!keep.log\n/only-here\nbuild/\ndocs/*.txt\na/**/z\n[ab]?.tmp\n\\#x  \n**/deep\n",
		"project/.gitignore": "!own.log\nsecret\n",
		"project/x":          "",
	})
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	ignored := Ignored(filepath.Join(dir, "project"))
	for name, want := range map[string]bool{
		"project/a.log": true, "project/roles/x/b.log": true, "project/keep.log": false, "project/own.log": false, "own.log": true,
		"only-here": true, "project/only-here": false, "project/build/": true, "project/build": false, "docs/a.txt": true, "docs/b/a.txt": false, "project/docs/a.txt": false,
		"a/z": true, "a/b/c/z": true, "project/a1.tmp": true, "project/c1.tmp": false, "project/#x": true, "project/secret": true, "secret": false,
		"project/p/deep": true, "project/playbook.yml": false,
	} {
		isDir := name[len(name)-1] == '/'
		if got := ignored(filepath.Join(dir, name), isDir); got != want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	if Ignored(filepath.Join(dir, "elsewhere"))("/outside/a.log", false) {
		t.Error("what is outside of the repository is not ignored")
	}
}

// A checkout without a repository, such as in an image.
func TestRulesAboveCountOnlyInARepository(t *testing.T) {
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{".gitignore": "*.log\n", "project/x.log": ""})
	if Ignored(filepath.Join(dir, "project"))(filepath.Join(dir, "project/x.log"), false) {
		t.Error("a file above counts")
	}
}

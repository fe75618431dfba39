package tree

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A checkout of somebody else has links where files are to be written, or may be.
func TestNothingIsWrittenThroughALink(t *testing.T) {
	for why, test := range map[string]struct {
		link, path string
		write      func(root, path string) error
	}{
		"a file":                     {"config/role.yaml", "config/role.yaml", replaced},
		"a file that is new":         {"config/new.yaml", "config/new.yaml", created},
		"a link that is new":         {"config/new.yaml", "config/new.yaml", linked},
		"its directory":              {"config", "config/rbac/role.yaml", replaced},
		"a directory above":          {"config", "config/rbac/deep/role.yaml", created},
		"a directory, for a link":    {"config", "config/rbac/link", linked},
		"a path out of the project":  {"", "../victim", created},
		"a path through the project": {"", "config/../../victim", replaced},
	} {
		t.Run(why, func(t *testing.T) {
			outside := t.TempDir()
			root, victim := filepath.Join(outside, "project"), filepath.Join(outside, "victim")
			must(t, os.MkdirAll(filepath.Join(outside, "elsewhere", "rbac"), 0o755))
			must(t, os.WriteFile(filepath.Join(outside, "elsewhere", "rbac", "role.yaml"), []byte("mine"), 0o644))
			must(t, os.MkdirAll(root, 0o755))
			must(t, os.WriteFile(victim, []byte("mine"), 0o644))
			switch test.link {
			case "":
			case "config":
				must(t, os.Symlink("../elsewhere", filepath.Join(root, "config")))
			default:
				must(t, os.MkdirAll(filepath.Join(root, "config"), 0o755))
				must(t, os.Symlink("../../victim", filepath.Join(root, test.link)))
			}
			err := test.write(root, test.path)
			if err == nil || test.link != "" && !strings.Contains(err.Error(), test.link+" is a symbolic link") {
				t.Errorf("got %v", err)
			}
			for _, file := range []string{victim, filepath.Join(outside, "elsewhere", "rbac", "role.yaml")} {
				if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
					t.Errorf("%s: %q, %v", file, text, err)
				}
			}
			if entries, _ := os.ReadDir(filepath.Join(outside, "elsewhere", "rbac")); len(entries) != 1 {
				t.Errorf("something was made outside: %v", entries)
			}
		})
	}
}

func replaced(root, path string) error { return Replace(root, path, []byte("new")) }
func created(root, path string) error  { return Create(root, path, []byte("new")) }
func linked(root, path string) error   { return Link(root, path, "somewhere") }

// The name of the temporary file cannot be foreseen: earlier versions wrote through NAME.new.
func TestNoLinkOfATemporaryFileIsFollowed(t *testing.T) {
	root := t.TempDir()
	victim := filepath.Join(t.TempDir(), "victim")
	must(t, os.WriteFile(victim, []byte("mine"), 0o600))
	must(t, os.WriteFile(filepath.Join(root, "role.yaml"), []byte("old"), 0o640))
	for _, name := range []string{"role.yaml.new", ".role.yaml.new"} {
		must(t, os.Symlink(victim, filepath.Join(root, name)))
	}
	must(t, Replace(root, "role.yaml", []byte("new")))
	if text, _ := os.ReadFile(victim); string(text) != "mine" {
		t.Errorf("the file outside has %q", text)
	}
	if text, _ := os.ReadFile(filepath.Join(root, "role.yaml")); string(text) != "new" {
		t.Errorf("the file has %q", text)
	}
	if info, err := os.Lstat(filepath.Join(root, "role.yaml")); err != nil || info.Mode() != 0o640 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(root); len(entries) != 3 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestCreateAndLinkMakeDirectoriesAndOverwriteNothing(t *testing.T) {
	root := filepath.Join(t.TempDir(), "not", "yet")
	must(t, Create(root, "a/b/c.yaml", []byte("text")))
	must(t, Link(root, "charts/x/files/rbac", "../../../config/rbac"))
	if info, err := os.Lstat(filepath.Join(root, "charts/x/files/rbac")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("got %v", err)
	}
	if Create(root, "a/b/c.yaml", []byte("other")) == nil || Link(root, "a/b/c.yaml", "x") == nil {
		t.Error("a file was overwritten")
	}
	if Replace(root, "a/none.yaml", nil) == nil {
		t.Error("a file that does not exist was replaced")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

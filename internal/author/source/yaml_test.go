package source

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFilesBelow(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	err := errors.Join(
		os.MkdirAll(filepath.Join(target, "sub.yaml"), 0o700),
		os.WriteFile(filepath.Join(target, "a.yaml"), nil, 0o600),
		os.WriteFile(filepath.Join(target, "sub.yaml", "db.example.com"), nil, 0o600),
		os.Symlink("a.yaml", filepath.Join(target, "b.yaml")),
		os.Symlink("user@host.1", filepath.Join(target, ".#a.yaml")), // As an editor's lock.
		os.Symlink("real", link),
	)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		dir        string
		extensions []string
		want       []string
	}{
		"regular files, and links to them":    {target, []string{".yaml"}, []string{"a.yaml", "b.yaml"}},
		"any extension":                       {target, nil, []string{"a.yaml", "b.yaml", "sub.yaml/db.example.com"}},
		"a link to the directory is followed": {link, []string{".yaml"}, []string{"a.yaml", "b.yaml"}},
		"a directory that does not exist":     {filepath.Join(dir, "none"), nil, nil},
	}
	for why, test := range tests {
		t.Run(why, func(t *testing.T) {
			files, err := FilesBelow(test.dir, test.extensions...)
			var got []string
			for _, file := range files {
				name, relErr := filepath.Rel(test.dir, file)
				err = errors.Join(err, relErr)
				got = append(got, name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
}

func TestItemsTellAnEmptyListFromOtherNodes(t *testing.T) {
	documents, fault := Parse("f", []byte("empty: []\ntext: a\n"))
	if fault != nil {
		t.Fatal(fault.Message)
	}
	if Items(Field(documents[0], "empty")) == nil || Items(Field(documents[0], "text")) != nil {
		t.Error("nil stands for nodes that are not lists, and for no list")
	}
}

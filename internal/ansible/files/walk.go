package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxReadBytes is the maximum size of a file whose text counts. A larger one is usually a file
// that a role copies.
const maxReadBytes = 1 << 20

// visitor gets a regular file or a directory, and its name in the tree.
type visitor func(path, name string, info fs.FileInfo) error

// walk has the visitor see what is at path, and in it, in lexical order. It leaves out hidden
// entries and __pycache__, and follows symbolic links. A missing path is not an error.
func walk(path string, visit visitor) error { return walkWithout(nil, path, visit) }

// walkWithout also leaves out that for which skip is true.
func walkWithout(skip func(path string, isDir bool) bool, path string, visit visitor) error {
	return (&walker{visit, skip, map[string]bool{}}).see(path, ".")
}

type walker struct {
	visit visitor
	skip  func(path string, isDir bool) bool
	// openDirs are the directories on the way to the current one. A walk through a link to
	// one of them would never end.
	openDirs map[string]bool
}

func (w *walker) see(path, name string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // Such as a link without a target.
	case err != nil:
		return err
	case name != "." && w.skip != nil && w.skip(path, info.IsDir()):
		return nil
	case info.IsDir():
		return w.enter(path, name, info)
	case info.Mode().IsRegular():
		return w.visit(path, name, info)
	}
	return nil
}

func (w *walker) enter(path, name string, info fs.FileInfo) error {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if w.openDirs[resolved] {
		return nil
	}
	w.openDirs[resolved] = true
	defer delete(w.openDirs, resolved)
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	if err := w.visit(path, name, info); err != nil {
		return err
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") || entry.Name() == "__pycache__" {
			continue
		}
		if err := w.see(filepath.Join(path, entry.Name()), filepath.Join(name, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

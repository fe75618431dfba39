// Package tree writes the files of a project. A checkout of somebody else may have a symbolic link
// where a file is to be written, or where a temporary one might be: nothing is written through one.
// It does not decide what is written.
package tree

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Check returns an error if path, which is relative to the directory root, leads through a symbolic
// link, or is one. A missing file is not an error.
func Check(root, path string) error {
	path = filepath.Clean(filepath.FromSlash(path))
	if !filepath.IsLocal(path) {
		return fmt.Errorf("%s is not below %s", path, root)
	}
	there := ""
	for part := range strings.SplitSeq(path, string(filepath.Separator)) {
		there = filepath.Join(there, part)
		info, err := os.Lstat(filepath.Join(root, there))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s is a symbolic link, and nothing is written through one: put what it leads to in its place, or edit that by hand", there)
		}
	}
	return nil
}

// Create writes a file that does not exist, and the directories above it.
func Create(root, path string, content []byte) error {
	return within(root, path, func(dir *os.Root, path string) error { return create(dir, path, content, 0o644) })
}

// Link makes a symbolic link, and the directories above it. target is relative to the link.
func Link(root, path, target string) error {
	return within(root, path, func(dir *os.Root, path string) error { return dir.Symlink(filepath.FromSlash(target), path) })
}

// Replace replaces the content of a file, whose mode stays. A reader, such as a
// manager that starts, always gets the whole of one version.
func Replace(root, path string, content []byte) error {
	return within(root, path, func(dir *os.Root, path string) error {
		info, err := dir.Lstat(path)
		if err != nil {
			return err
		}
		temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+rand.Text()+".new")
		if err := create(dir, temporary, content, info.Mode().Perm()); err != nil {
			return err
		}
		if err := dir.Rename(temporary, path); err != nil {
			return errors.Join(err, dir.Remove(temporary))
		}
		return nil
	})
}

// within calls write for a path below root that has no symbolic link in it. A link that somebody
// puts there at this moment leads to nothing outside of root.
func within(root, path string, write func(dir *os.Root, path string) error) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	if err := Check(root, path); err != nil {
		return err
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer dir.Close() // It has nothing to write: an error loses nothing.
	path = filepath.FromSlash(path)
	if err := dir.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return write(dir, path)
}

// create writes a file, where there must be none.
func create(dir *os.Root, path string, content []byte, mode fs.FileMode) error {
	file, err := dir.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, dir.Remove(path))
	}
	return nil
}

package harness

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// Files lists what is below a directory and is none itself, by its path relative to it.
// A file that is removed at the same time may be missing; one that may not be read is.
func Files(dir string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
			return nil
		case err != nil || entry.IsDir():
			return err
		}
		name, err := filepath.Rel(dir, path)
		found = append(found, name)
		return err
	})
	return found, err
}

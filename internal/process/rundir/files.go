package rundir

import (
	"errors"
	"io/fs"
	"os"
)

// ensureDir opens a directory of parent, and makes it if there is none. It removes
// anything else of that name, such as a symbolic link.
func ensureDir(parent *os.Root, name string) (*os.Root, error) {
	info, err := parent.Lstat(name)
	if err == nil && !info.IsDir() {
		if err := parent.Remove(name); err != nil {
			return nil, err
		}
		err = fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = mkdir(parent, name)
	}
	if err != nil {
		return nil, err
	}
	return openDir(parent, name)
}

func mkdir(parent *os.Root, name string) error {
	if err := parent.Mkdir(name, 0o700); err != nil {
		return err
	}
	if err := parent.Chmod(name, 0o700); err != nil {
		return errors.Join(err, parent.Remove(name))
	}
	return nil
}

func writeFile(parent *os.Root, name string, content []byte, mode fs.FileMode) error {
	f, err := createPrivate(parent, name, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// createPrivate makes a new file that only this user can open.
func createPrivate(parent *os.Root, name string, mode fs.FileMode) (*os.File, error) {
	f, err := parent.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(mode); err != nil {
		return nil, errors.Join(err, f.Close(), parent.Remove(name))
	}
	return f, nil
}

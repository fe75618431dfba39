package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Open opens and locks path, and makes missing directories. It refuses a path that is a symbolic
// link, belongs to another user, is writable by other users, holds directories that no manager
// made, or is used by another manager. It removes the files of a killed predecessor's runs;
// artifacts stay.
func Open(path string) (*Root, error) {
	return TakeOver(path, func(string) {})
}

// TakeOver is like Open for a directory in which processes of a killed predecessor may
// still be running. It calls endProcesses with the directory's path (Root.Path) after
// locking the directory and before removing anything in it.
func TakeOver(path string, endProcesses func(path string)) (*Root, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("run directory %q: %w", path, err)
	}
	if err := createDir(abs); err != nil {
		return nil, fmt.Errorf("run directory %q: %w", abs, err)
	}
	r := &Root{running: map[string]bool{}}
	if r.root, err = openPrivate(abs); err != nil {
		return nil, fmt.Errorf("run directory %q: %w", abs, err)
	}
	if err := r.takeOver(abs, endProcesses); err != nil {
		return nil, errors.Join(fmt.Errorf("run directory %q: %w", abs, err), r.Close())
	}
	return r, nil
}

// takeOver locks the directory, ends a predecessor's processes and removes their files.
func (r *Root) takeOver(path string, endProcesses func(path string)) error {
	var err error
	if r.path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	if err := r.lockRoot(); err != nil {
		return err
	}
	endProcesses(r.path)
	return r.removeRunFiles()
}

// removeRunFiles removes the files that all runs left outside of their artifacts.
func (r *Root) removeRunFiles() error {
	if err := removeEntries(r.root, isTrash); err != nil {
		return err
	}
	if err := errors.Join(r.removeElsewhere(namesName), r.makeTemp()); err != nil {
		return err
	}
	uids, err := r.UIDs()
	for _, uid := range uids {
		err = errors.Join(err, r.removeRun(uid))
	}
	return err
}

// removeRun removes the files that an ended run of the CR left outside of its artifacts.
func (r *Root) removeRun(uid string) error {
	dir, err := openDir(r.root, uid)
	if err != nil {
		return err
	}
	defer dir.Close()
	return errors.Join(removeEntries(dir, isTrash), r.removeEntry(dir, runName))
}

// isTrash reports whether a killed process was removing this entry.
func isTrash(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), trashPrefix) }

// createDir makes path, if it does not exist, with mode 0700 whatever the umask is.
func createDir(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Chmod(path, 0o700)
}

// openPrivate opens a directory of runs, to which only this user can write.
func openPrivate(path string) (*os.Root, error) {
	root, err := openOwn(path)
	if err != nil {
		return nil, err
	}
	if err := checkEntries(root); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	if err := root.Chmod(".", 0o700); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// openOwn opens a directory of this user to which nobody else can write.
func openOwn(path string) (*os.Root, error) {
	seen, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if err := checkPrivate(seen); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	if err := checkSameDir(root, seen); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// checkEntries refuses a directory that holds directories that no manager made, because
// the manager would remove them as directories of deleted CRs. A directory with a lock file
// has been used by a manager.
func checkEntries(root *os.Root) error {
	if _, err := root.Lstat(lockName); err == nil {
		return nil
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || !validName.MatchString(e.Name()) {
			continue
		}
		inner, err := fs.ReadDir(root.FS(), e.Name())
		if err != nil {
			return err
		}
		if slices.ContainsFunc(inner, isForeign) {
			return fmt.Errorf("holds %q, which no manager made; choose a directory that is empty or does not exist yet", e.Name())
		}
	}
	return nil
}

// isForeign reports whether no manager makes such an entry in the directory of a CR.
func isForeign(e fs.DirEntry) bool {
	return e.Name() != runName && e.Name() != artifactsName && !isTrash(e)
}

func checkPrivate(dir fs.FileInfo) error {
	if !dir.IsDir() {
		return fmt.Errorf("is %s, not a directory; a symbolic link is not allowed here", dir.Mode().Type())
	}
	if stat, ok := dir.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("belongs to user %d, not to user %d; choose a directory that does not exist yet", stat.Uid, os.Geteuid())
	}
	if dir.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("can be written by others (mode %04o); chmod it to 0700 or choose another", dir.Mode().Perm())
	}
	return nil
}

// openDir opens a directory of parent, but never through a symbolic link.
func openDir(parent *os.Root, name string) (*os.Root, error) {
	seen, err := parent.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, fmt.Errorf("%q: %w", name, errNoDirectory)
	}
	dir, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if err := checkSameDir(dir, seen); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// openPath is like openDir for a directory several levels below parent.
func openPath(parent *os.Root, name string, below ...string) (*os.Root, error) {
	dir, err := openDir(parent, name)
	for _, next := range below {
		if err != nil {
			return nil, err
		}
		above := dir
		dir, err = openDir(above, next)
		if closeErr := above.Close(); err == nil && closeErr != nil {
			return nil, errors.Join(closeErr, dir.Close())
		}
	}
	return dir, err
}

// checkSameDir returns an error if the directory was replaced between Lstat and opening it.
func checkSameDir(dir *os.Root, seen fs.FileInfo) error {
	opened, err := dir.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(seen, opened) {
		return fmt.Errorf("%q was replaced while it was opened", dir.Name())
	}
	return nil
}

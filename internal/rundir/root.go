package rundir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
)

// ErrBusy says that a run of the CR has not ended, so that its directory can be
// neither prepared for another run nor removed.
var ErrBusy = errors.New("a run of this resource has not ended")

const (
	lockName    = ".lock"
	trashPrefix = ".trash-"
)

// element is what a UID or a run id must look like. It excludes every name with
// a meaning to the file system and the names that this package gives itself.
var element = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// Root is the directory that holds the directories of all CRs. Its methods may
// be called at the same time.
type Root struct {
	path string
	root *os.Root
	lock *os.File

	mu   sync.Mutex
	live map[string]bool // by UID
}

// Open makes path ready and keeps it until Close. Missing directories are made.
// It refuses a path that is a symbolic link, belongs to another user, can be
// written by others, or is in use by another process. What a killed predecessor
// left of its runs is removed; artifacts stay.
func Open(path string) (*Root, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("run directory %q: %w", path, err)
	}
	if err := create(abs); err != nil {
		return nil, fmt.Errorf("run directory %q: %w", abs, err)
	}
	r := &Root{path: abs, live: map[string]bool{}}
	if r.root, err = openPrivate(abs); err != nil {
		return nil, fmt.Errorf("run directory %q: %w", abs, err)
	}
	if err := r.takeOver(); err != nil {
		return nil, errors.Join(fmt.Errorf("run directory %q: %w", abs, err), r.Close())
	}
	return r, nil
}

// Close gives the directory up. Nothing is removed.
func (r *Root) Close() error {
	err := r.root.Close()
	if r.lock != nil {
		err = errors.Join(err, r.lock.Close())
	}
	return err
}

// UIDs lists the CRs that have a directory.
func (r *Root) UIDs() ([]string, error) {
	entries, err := fs.ReadDir(r.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("list run directories: %w", err)
	}
	var uids []string
	for _, e := range entries {
		if e.IsDir() && element.MatchString(e.Name()) {
			uids = append(uids, e.Name())
		}
	}
	return uids, nil
}

// Remove removes what there is of a CR, artifacts included. It is no error if
// there is nothing; ErrBusy if a run has not ended.
func (r *Root) Remove(uid string) error {
	if !element.MatchString(uid) {
		return fmt.Errorf("remove run directory: %q is no UID", uid)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live[uid] {
		return fmt.Errorf("remove run directory of %q: %w", uid, ErrBusy)
	}
	if err := r.discard(r.root, uid); err != nil {
		return fmt.Errorf("remove run directory of %q: %w", uid, err)
	}
	return nil
}

// Sweep removes the directories of all CRs that keep does not want, except for
// those with a run that has not ended, and returns their UIDs.
func (r *Root) Sweep(keep func(uid string) bool) ([]string, error) {
	uids, err := r.UIDs()
	if err != nil {
		return nil, err
	}
	var removed []string
	var errs []error
	for _, uid := range uids {
		if keep(uid) {
			continue
		}
		switch err := r.Remove(uid); {
		case err == nil:
			removed = append(removed, uid)
		case !errors.Is(err, ErrBusy):
			errs = append(errs, err)
		}
	}
	return removed, errors.Join(errs...)
}

// takeOver locks the directory and clears what a predecessor left.
func (r *Root) takeOver() error {
	var err error
	if r.lock, err = r.root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if err := syscall.Flock(int(r.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("in use by another process; give each manager a run directory of its own: %w", err)
	}
	entries, err := fs.ReadDir(r.root.FS(), ".")
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, trashPrefix):
			errs = append(errs, r.root.RemoveAll(name))
		case e.IsDir() && element.MatchString(name):
			errs = append(errs, r.clear(name))
		}
	}
	return errors.Join(errs...)
}

// clear removes what an ended run of the CR left outside its artifacts.
func (r *Root) clear(uid string) error {
	dir, err := openDir(r.root, uid)
	if err != nil {
		return err
	}
	defer dir.Close()
	return r.discard(dir, runName)
}

// discard moves an entry out of the way, so that nobody ever sees half of it,
// and then removes it. Of a symbolic link only the link goes.
func (r *Root) discard(parent *os.Root, name string) error {
	trash := trashPrefix + rand.Text()
	err := parent.Rename(name, trash)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return parent.RemoveAll(trash)
}

// create makes path if it does not exist, with mode 0700 whatever the umask is.
func create(path string) error {
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

// openPrivate opens a directory that only this user can write to.
func openPrivate(path string) (*os.Root, error) {
	seen, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if err := private(seen); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	if err := sameDir(root, seen); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	if err := root.Chmod(".", 0o700); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

func private(dir fs.FileInfo) error {
	if !dir.IsDir() {
		return fmt.Errorf("is %s, not a directory; a symbolic link is not followed here", dir.Mode().Type())
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
		return nil, fmt.Errorf("%q is no directory", name)
	}
	dir, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if err := sameDir(dir, seen); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// sameDir makes sure that what has been opened is what was looked at before.
func sameDir(dir *os.Root, seen fs.FileInfo) error {
	opened, err := dir.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(seen, opened) {
		return fmt.Errorf("%q was replaced while it was opened", dir.Name())
	}
	return nil
}

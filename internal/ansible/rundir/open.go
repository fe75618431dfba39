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
	"time"
)

const (
	// lockPatience is how long the lock is waited for that another process holds.
	lockPatience = 5 * time.Second
	lockPause    = 20 * time.Millisecond
)

// Open makes path ready and keeps it until Close. Missing directories are made.
// It refuses a path that is a symbolic link, belongs to another user, can be
// written by others, holds directories that no manager made, or is in use by
// another process. What a killed predecessor left of its runs is removed;
// artifacts stay.
func Open(path string) (*Root, error) {
	return TakeOver(path, func(string) {})
}

// TakeOver is Open for a directory in which processes of a killed predecessor may
// still be at work. It calls end with the directory's path, as Root.Path gives
// it, once no other manager can hold the directory, and before anything in it is
// removed.
func TakeOver(path string, end func(path string)) (*Root, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("run directory %q: %w", path, err)
	}
	if err := create(abs); err != nil {
		return nil, fmt.Errorf("run directory %q: %w", abs, err)
	}
	r := &Root{live: map[string]bool{}}
	if r.root, err = openPrivate(abs); err != nil {
		return nil, fmt.Errorf("run directory %q: %w", abs, err)
	}
	if err := r.takeOver(abs, end); err != nil {
		return nil, errors.Join(fmt.Errorf("run directory %q: %w", abs, err), r.Close())
	}
	return r, nil
}

// takeOver locks the directory, has a predecessor's processes ended and clears
// what they left.
func (r *Root) takeOver(path string, end func(path string)) error {
	var err error
	if r.path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	if err := r.acquire(); err != nil {
		return err
	}
	end(r.path)
	return r.clearAll()
}

// acquire locks the directory for as long as the lock's file is open.
func (r *Root) acquire() error {
	var err error
	if r.lock, err = r.root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if err := r.lock.Chmod(0o600); err != nil {
		return err
	}
	return explainLock(lock(r.lock))
}

// lock waits for a predecessor that was killed while it started a process: until
// it is started, that process holds the lock, and is not known for what it is.
func lock(file *os.File) error {
	enough := time.After(lockPatience)
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-enough:
			return err
		case <-time.After(lockPause):
		}
	}
}

func explainLock(err error) error {
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return fmt.Errorf("in use by another process; give each manager a run directory of its own: %w", err)
	case err != nil:
		return fmt.Errorf("can't be locked; choose one on a disk of this machine: %w", err)
	}
	return nil
}

// clearAll removes what all runs left outside their artifacts.
func (r *Root) clearAll() error {
	if err := removeEntries(r.root, trash); err != nil {
		return err
	}
	if err := r.discard(r.root, tempName); err != nil {
		return err
	}
	if err := mkdir(r.root, tempName); err != nil {
		return err
	}
	uids, err := r.UIDs()
	for _, uid := range uids {
		err = errors.Join(err, r.clear(uid))
	}
	return err
}

// clear removes what an ended run of the CR left outside its artifacts.
func (r *Root) clear(uid string) error {
	dir, err := openDir(r.root, uid)
	if err != nil {
		return err
	}
	defer dir.Close()
	return errors.Join(removeEntries(dir, trash), r.discard(dir, runName))
}

// trash is what a process was killed over while it removed it.
func trash(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), trashPrefix) }

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
	if err := nobodyElses(root); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	if err := root.Chmod(".", 0o700); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// nobodyElses refuses a directory with directories in it that no manager made:
// they would be taken for those of resources that are gone, and be removed. One
// with a lock has had a manager.
func nobodyElses(root *os.Root) error {
	if _, err := root.Lstat(lockName); err == nil {
		return nil
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || !element.MatchString(e.Name()) {
			continue
		}
		within, err := fs.ReadDir(root.FS(), e.Name())
		if err != nil {
			return err
		}
		if slices.ContainsFunc(within, notOurs) {
			return fmt.Errorf("holds %q, which no manager made; choose a directory that is empty or does not exist yet", e.Name())
		}
	}
	return nil
}

// notOurs is true of what no manager makes in the directory of a CR.
func notOurs(e fs.DirEntry) bool {
	return e.Name() != runName && e.Name() != artifactsName && !trash(e)
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
		return nil, fmt.Errorf("%q: %w", name, errNoDirectory)
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

// openPath is openDir for a directory some levels below.
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

package rundir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"sync"
)

// ErrBusy is returned if a run of the CR has not ended, so that its directory can neither
// be prepared for another run nor be removed.
var ErrBusy = errors.New("a run of this resource has not ended")

var errNoDirectory = errors.New("is not a directory")

const (
	lockName    = ".lock"
	trashPrefix = ".trash-"
)

// validName matches UIDs, run ids and file names of artifacts. It excludes every name with
// a meaning for the file system, and the names that this package uses itself.
var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// Root is the directory that holds the directories of all CRs. Its methods may be called
// concurrently.
type Root struct {
	path string
	root *os.Root
	lock *os.File

	mu      sync.Mutex
	running map[string]bool // by UID
	// leftover has the UIDs of CRs with files that could not be removed; "" stands for the
	// files of CRs that are gone. Such files may hold secrets, so their removal is retried
	// when a run ends, and by Sweep.
	leftover map[string]bool
	// tempPath is the temporary directory that runs share, ROOT/.tmp where that is short
	// enough.
	tempPath string
	temp     temp
	// namesPath is the directory with the named paths of runs; "" until a run needs one.
	namesPath string

	usage usage
}

// Close unlocks the directory. It removes its files elsewhere, such as the temporary directory of
// runs, and nothing else.
func (r *Root) Close() error {
	var err error
	if r.hasTempElsewhere() {
		err = r.removeElsewhere(tempName)
	}
	if r.namesPath != "" {
		err = errors.Join(err, r.removeElsewhere(namesName))
	}
	err = errors.Join(err, r.root.Close())
	if r.lock != nil {
		err = errors.Join(err, r.lock.Close())
	}
	return err
}

// Path returns the directory's path, absolute and without symbolic links. It is the same
// for every manager that uses this directory.
func (r *Root) Path() string { return r.path }

// UIDs returns the UIDs of the CRs that have a directory.
func (r *Root) UIDs() ([]string, error) {
	entries, err := fs.ReadDir(r.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("list run directories: %w", err)
	}
	var uids []string
	for _, e := range entries {
		if e.IsDir() && validName.MatchString(e.Name()) {
			uids = append(uids, e.Name())
		}
	}
	return uids, nil
}

// Remove removes the directory of a CR, artifacts included. It returns nil if there is
// none, and ErrBusy if a run of the CR has not ended.
func (r *Root) Remove(uid string) error {
	if !validName.MatchString(uid) {
		return fmt.Errorf("remove run directory: invalid UID %q", uid)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[uid] {
		return fmt.Errorf("remove run directory of %q: %w", uid, ErrBusy)
	}
	if err := r.removeEntry(r.root, uid); err != nil {
		r.markLeftover("")
		return fmt.Errorf("remove run directory of %q: %w", uid, err)
	}
	r.usage.forget(uid)
	return nil
}

// Sweep removes the directories of all CRs for which keep returns false, except those with
// a run that has not ended, and returns their UIDs. It also retries removals that failed.
func (r *Root) Sweep(keep func(uid string) bool) ([]string, error) {
	r.mu.Lock()
	errs := []error{r.removeLeftovers()}
	r.mu.Unlock()
	uids, err := r.UIDs()
	if err != nil {
		return nil, err
	}
	var removed []string
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

// startRun notes that the CR is running, and reports whether it was not.
func (r *Root) startRun(uid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[uid] {
		return false
	}
	r.running[uid] = true
	return true
}

// endRun lets the next run of the CR start. removed says whether the run's directory was
// removed.
func (r *Root) endRun(uid string, removed bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !removed {
		r.markLeftover(uid)
	}
	delete(r.running, uid)
	return errors.Join(r.removeLeftovers(), r.clearTemp(uid))
}

func (r *Root) markLeftover(uid string) {
	if r.leftover == nil {
		r.leftover = map[string]bool{}
	}
	r.leftover[uid] = true
}

// removeLeftovers retries removals that failed. It must be called with mu locked.
func (r *Root) removeLeftovers() error {
	var errs []error
	for uid := range r.leftover {
		if r.running[uid] {
			continue
		}
		err := removeEntries(r.root, isTrash)
		if uid != "" {
			err = r.removeRun(uid)
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			delete(r.leftover, uid)
		} else {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// removeEntries removes the entries of a directory that match.
func removeEntries(dir *os.Root, match func(fs.DirEntry) bool) error {
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if match(e) {
			errs = append(errs, removeTree(dir, e.Name()))
		}
	}
	return errors.Join(errs...)
}

// removeEntry renames an entry and then removes it, so that nobody sees half of it. It does
// not follow a symbolic link.
func (r *Root) removeEntry(parent *os.Root, name string) error {
	trash := trashPrefix + rand.Text()
	err := parent.Rename(name, trash)
	switch {
	case err == nil:
		return removeTree(parent, trash)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	// A full disk may have no room for the new name.
	if removeErr := removeTree(parent, name); removeErr != nil {
		return errors.Join(err, removeErr)
	}
	return nil
}

// removeTree removes an entry and everything below it. A run may leave directories without
// write permission, such as some caches; removeTree makes them writable first.
func removeTree(parent *os.Root, name string) error {
	err := parent.RemoveAll(name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	// After an error here, RemoveAll fails.
	_ = fs.WalkDir(parent.FS(), name, func(path string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = parent.Chmod(path, 0o700)
		}
		return nil
	})
	return parent.RemoveAll(name)
}

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

// ErrBusy says that a run of the CR has not ended, so that its directory can be
// neither prepared for another run nor removed.
var ErrBusy = errors.New("a run of this resource has not ended")

var errNoDirectory = errors.New("is no directory")

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
	// leftover CRs have what could not be removed, "" what is not a CR's any more. It
	// may hold secrets, so it is tried again whenever a run ends, and by Sweep.
	leftover map[string]bool
	temp     temp

	usage usage
}

// Close gives the directory up. Nothing is removed.
func (r *Root) Close() error {
	err := r.root.Close()
	if r.lock != nil {
		err = errors.Join(err, r.lock.Close())
	}
	return err
}

// Path is the directory's own path, absolute and without symbolic links: the same
// for every manager that ever has this directory.
func (r *Root) Path() string { return r.path }

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
		r.setUntidy("")
		return fmt.Errorf("remove run directory of %q: %w", uid, err)
	}
	r.usage.drop(uid)
	return nil
}

// Sweep removes the directories of all CRs that keep does not want, except for
// those with a run that has not ended, and returns their UIDs. It tries again what
// could not be removed before.
func (r *Root) Sweep(keep func(uid string) bool) ([]string, error) {
	r.mu.Lock()
	errs := []error{r.tidy()}
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

func (r *Root) enter(uid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live[uid] {
		return false
	}
	r.live[uid] = true
	return true
}

// leave lets the next run of the CR in. clean says that the run's own directory is
// gone.
func (r *Root) leave(uid string, clean bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !clean {
		r.setUntidy(uid)
	}
	delete(r.live, uid)
	return errors.Join(r.tidy(), r.clearTemp(uid))
}

func (r *Root) setUntidy(uid string) {
	if r.leftover == nil {
		r.leftover = map[string]bool{}
	}
	r.leftover[uid] = true
}

// tidy removes what could not be removed before. It is called with the lock held.
func (r *Root) tidy() error {
	var errs []error
	for uid := range r.leftover {
		if r.live[uid] {
			continue
		}
		err := removeEntries(r.root, trash)
		if uid != "" {
			err = r.clear(uid)
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			delete(r.leftover, uid)
		} else {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// removeEntries removes those entries of a directory that are to go.
func removeEntries(dir *os.Root, gone func(fs.DirEntry) bool) error {
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if gone(e) {
			errs = append(errs, removeTree(dir, e.Name()))
		}
	}
	return errors.Join(errs...)
}

// discard moves an entry out of the way, so that nobody ever sees half of it,
// and then removes it. Of a symbolic link only the link goes.
func (r *Root) discard(parent *os.Root, name string) error {
	trash := trashPrefix + rand.Text()
	err := parent.Rename(name, trash)
	switch {
	case err == nil:
		return removeTree(parent, trash)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	// A full disk may have no room for the other name. Removing makes some.
	if removeErr := removeTree(parent, name); removeErr != nil {
		return errors.Join(err, removeErr)
	}
	return nil
}

// removeTree removes an entry with all that is below it. What a run has put there
// may be in directories that may not be written to, as some caches are kept.
func removeTree(parent *os.Root, name string) error {
	err := parent.RemoveAll(name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	// What goes wrong here shows in what can't be removed.
	_ = fs.WalkDir(parent.FS(), name, func(path string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = parent.Chmod(path, 0o700)
		}
		return nil
	})
	return parent.RemoveAll(name)
}

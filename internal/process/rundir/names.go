package rundir

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// namesName is a link in ROOT to the directory with the named paths of runs, by which a successor
// finds it.
const namesName = ".names"

// named makes another path for the run directory of a CR, which ends with the parts of resource and
// has three directories before them, and returns it. Content takes group, version, kind and name
// from the path of its inventory, by their places from the root. The path leads over a symbolic
// link, whatever the length of ROOT's is. named returns "" where no such path can be.
func (r *Root) named(uid, resource string) string {
	bad := func(part string) bool { return part == "" || part == "." || part == ".." || len(part) > 255 }
	if strings.Contains(resource, ",") || slices.ContainsFunc(strings.Split(resource, "/"), bad) { // Ansible takes a comma for a list of hosts.
		return ""
	}
	dir, err := r.openNames()
	if err != nil {
		return ""
	}
	defer dir.Close()
	at := uid
	err = errors.Join(removeTree(dir, uid), mkdir(dir, uid))
	for part := range strings.SplitSeq(filepath.Dir(resource), "/") {
		if at = filepath.Join(at, part); err == nil {
			err = mkdir(dir, at)
		}
	}
	if err == nil {
		err = dir.Symlink(filepath.Join(r.path, uid, runName), filepath.Join(uid, resource))
	}
	if err != nil {
		_ = removeTree(dir, uid) // Removed with the directory in any case.
		return ""
	}
	return filepath.Join(r.namesPath, uid, resource)
}

// openNames opens the directory with the named paths, and makes it if it is missing.
func (r *Root) openNames() (*os.Root, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.namesPath != "" {
		if dir, err := openOwn(r.namesPath); !errors.Is(err, fs.ErrNotExist) {
			return dir, err
		}
	}
	if err := errors.Join(r.removeElsewhere(namesName), checkStays(systemTemp)); err != nil {
		return nil, err
	}
	path := filepath.Join(systemTemp, "ensign-"+rand.Text())
	if err := r.makeElsewhere(namesName, path); err != nil {
		return nil, err
	}
	r.namesPath = path
	return openOwn(path)
}

// removeNamed removes the named path of a CR's run.
func (r *Root) removeNamed(uid string) error {
	r.mu.Lock()
	path := r.namesPath
	r.mu.Unlock()
	if path == "" {
		return nil
	}
	dir, err := openOwn(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(removeTree(dir, uid), dir.Close())
}

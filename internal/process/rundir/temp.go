package rundir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
)

const (
	tempName = ".tmp"
	// discoveryCaches matches the files in which Python's Kubernetes client caches the API's
	// discovery for other processes.
	discoveryCaches = "k8srcp-*"
	// maxTempPath is the maximum length of a temporary directory's path. A socket's path may
	// have 107 bytes, of which Python needs 32 below that directory.
	maxTempPath = 75
	// systemTemp is used if the path of $TMPDIR is too long as well.
	systemTemp = "/tmp"
)

// processTempName matches the random names of temporary files that Python or Ansible makes
// for one process.
var processTempName = regexp.MustCompile(`^(ansible_.+_payload_|pymp-|tmp)[a-z0-9_]{8}$`)

// temp describes the temporary directory that runs share.
type temp struct {
	// candidates were in the directory when only the runs in waitFor were running. So these runs
	// or earlier ones made them.
	candidates []string
	waitFor    map[string]bool
}

// clearTemp is called with mu locked when a run of the CR has ended. If nothing is running, it
// removes everything but the caches. If something always runs, files of killed processes would
// fill the disk; so files of one process are removed when all runs have ended that may have
// made them.
func (r *Root) clearTemp(ended string) error {
	delete(r.temp.waitFor, ended)
	if len(r.running) > 0 && len(r.temp.waitFor) > 0 {
		return nil
	}
	dir, err := r.openTemp()
	if err != nil {
		return err
	}
	defer dir.Close()
	if len(r.running) == 0 {
		r.temp = temp{}
		return removeEntries(dir, isNotCache)
	}
	if err := removeEntries(dir, func(e fs.DirEntry) bool { return slices.Contains(r.temp.candidates, e.Name()) }); err != nil {
		return err
	}
	entries, err := fs.ReadDir(dir.FS(), ".")
	r.temp = temp{waitFor: maps.Clone(r.running)}
	for _, e := range entries {
		if processTempName.MatchString(e.Name()) {
			r.temp.candidates = append(r.temp.candidates, e.Name())
		}
	}
	return err
}

func isNotCache(e fs.DirEntry) bool {
	cache, err := path.Match(discoveryCaches, e.Name())
	return err == nil && !(cache && e.Type().IsRegular())
}

// elsewhereName matches the names of temporary directories outside of ROOT.
var elsewhereName = regexp.MustCompile(`^ensign-[A-Z2-7]{26}$`)

// makeTemp removes the temporary directory of a predecessor's runs and makes that of this
// manager's: ROOT/.tmp if its path is short enough, or a private directory elsewhere.
func (r *Root) makeTemp() error {
	if err := r.removeElsewhere(tempName); err != nil {
		return err
	}
	own := filepath.Join(r.path, tempName)
	if len(own) <= maxTempPath {
		r.tempPath = own
		return mkdir(r.root, tempName)
	}
	path := filepath.Join(os.TempDir(), "ensign-"+rand.Text())
	if len(path) > maxTempPath {
		path = filepath.Join(systemTemp, filepath.Base(path))
	}
	if err := checkStays(filepath.Dir(path)); err != nil {
		return fmt.Errorf("the path is too long for sockets of runs, and there is no safe temporary directory: %w; choose a run directory whose path has %d bytes at most, or set TMPDIR to a directory that only you can write to",
			err, maxTempPath-len("/"+tempName))
	}
	r.tempPath = path
	return r.makeElsewhere(tempName, path)
}

// makeElsewhere makes a private directory outside of ROOT, to which ROOT/name leads.
func (r *Root) makeElsewhere(name, path string) error {
	// The link comes first: a successor finds the directory by it, whenever this process is killed.
	if err := r.root.Symlink(path, name); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return os.Chmod(path, 0o700) // Whatever the umask is.
}

// checkStays returns an error if a user other than root can replace files that this user makes in the
// directory.
func checkStays(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("%q can be written by others and has no sticky bit (mode %04o)", dir, info.Mode().Perm())
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%q belongs to user %d", dir, stat.Uid)
	}
	return nil
}

func (r *Root) hasTempElsewhere() bool {
	return r.tempPath != "" && r.tempPath != filepath.Join(r.path, tempName)
}

// openTemp opens the temporary directory that runs share.
func (r *Root) openTemp() (*os.Root, error) {
	if r.hasTempElsewhere() {
		return openOwn(r.tempPath)
	}
	return openDir(r.root, tempName)
}

// removeElsewhere removes ROOT/name, and the directory to which it points if a manager made that.
func (r *Root) removeElsewhere(name string) error {
	path, err := r.root.Readlink(name)
	if err == nil && elsewhereName.MatchString(filepath.Base(path)) {
		if err := removeOwn(path); err != nil {
			return err
		}
	}
	return r.removeEntry(r.root, name)
}

// removeOwn removes a directory unless it belongs to another user.
func removeOwn(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !isPrivate(info) {
		return nil
	}
	if err != nil {
		return err
	}
	parent, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(removeTree(parent, filepath.Base(path)), parent.Close())
}

func isPrivate(dir fs.FileInfo) bool { return checkPrivate(dir) == nil }

package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	runName       = "run"
	artifactsName = "artifacts"
)

// settings of ansible-runner. It looks for a signal once per pexpect_timeout, 5 s
// by default; at 0.5 s a run that waits costs less than 0.05 % of a core. Its own
// copies of the output are not written at all.
const settings = `{"pexpect_timeout": 0.5, "suppress_output_file": true}`

// maxTempPath is how long a temporary directory's path may be. The kernel takes
// 107 bytes for a socket's path, of which Python needs 32 below that directory.
const maxTempPath = 75

// Inputs is what a run reads from its directory.
type Inputs struct {
	// ExtraVars is the content of env/extravars, byte for byte.
	ExtraVars []byte
	// Kubeconfig is what the run reaches the API with.
	Kubeconfig []byte
	// Inventory is a file or a directory to copy; "" for localhost alone.
	Inventory string
	// Python is the interpreter of localhost in the default inventory, as an
	// absolute path; "" leaves the choice to Ansible.
	Python string
	// Pipelining of localhost in the default inventory; false leaves the choice to
	// Ansible.
	Pipelining bool
}

// Dir is the directory of one run that has not ended. Its paths are absolute.
type Dir struct {
	// Private is ansible-runner's private data directory.
	Private string
	// Project is the working directory of ansible-playbook. It is empty.
	Project string
	// Output is where ansible-runner writes its artifacts, which nobody keeps.
	Output string
	// Inventory is the file or directory for ansible-playbook's -i.
	Inventory string
	// Kubeconfig is the file for KUBECONFIG.
	Kubeconfig string
	// Temp is for temporary files of Ansible.
	Temp string
	// SharedTemp is the temporary directory for everything else. All runs share
	// it, because Python's Kubernetes client keeps the API's discovery there; the
	// rest is removed when no run is live, and what modules leave that are killed as
	// soon as none is that may have started them.
	// It is "" when its path would be too long for programs that put sockets
	// there, as ansible-playbook does; then the system's has to do.
	SharedTemp string

	root      *Root
	uid       string
	home      *os.Root // ROOT/<uid>
	artifacts *os.Root // ROOT/<uid>/artifacts
	artifact  string   // the run's directory in artifacts
	room      int64    // that the artifact may still take
}

// Prepare makes a fresh directory for a run of the CR. Nothing of an earlier run
// is in it, in particular no "args" or env/cmdline file, with which
// ansible-runner would run another command. id is the run's; it names the
// artifact. The error is ErrBusy when an earlier run of the CR has not ended.
func (r *Root) Prepare(uid, id string, in Inputs) (*Dir, error) {
	if !element.MatchString(uid) || !element.MatchString(id) {
		return nil, fmt.Errorf("prepare run directory: UID %q and run id %q must be plain names", uid, id)
	}
	if !r.enter(uid) {
		return nil, fmt.Errorf("prepare run directory of %q: %w", uid, ErrBusy)
	}
	d := &Dir{root: r, uid: uid}
	d.SharedTemp = r.SharedTemp()
	if err := d.prepare(id, in); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare run directory of %q: %w", uid, err), d.discard())
	}
	return d, nil
}

// SharedTemp is Dir.SharedTemp of all runs.
func (r *Root) SharedTemp() string {
	if temp := filepath.Join(r.path, tempName); len(temp) <= maxTempPath {
		return temp
	}
	return ""
}

func (d *Dir) prepare(id string, in Inputs) error {
	var err error
	if d.home, err = ensureDir(d.root.root, d.uid); err != nil {
		return err
	}
	if d.artifacts, err = ensureDir(d.home, artifactsName); err != nil {
		return err
	}
	if err := d.root.discard(d.home, runName); err != nil {
		return err
	}
	run, err := ensureDir(d.home, runName)
	if err != nil {
		return err
	}
	defer run.Close()
	if err := d.fill(run, in); err != nil {
		return err
	}
	d.artifact = artifactName(time.Now(), id)
	if err := mkdir(d.artifacts, d.artifact); err != nil {
		return err
	}
	d.room = d.root.usage.perCR() - charge(0) // The directory itself takes the latter.
	return nil
}

// fill lays out a fresh run directory.
func (d *Dir) fill(run *os.Root, in Inputs) error {
	d.Private = filepath.Join(d.root.path, d.uid, runName)
	// The directory of temporary files of modules is there, because one that has to make
	// it warns of that. Those without pipelining find it made by Ansible.
	for _, name := range []string{"project", "output", "tmp", "tmp/" + remoteName, "env", "inventory"} {
		if err := mkdir(run, name); err != nil {
			return err
		}
	}
	d.Project, d.Output, d.Temp = filepath.Join(d.Private, "project"), filepath.Join(d.Private, "output"), filepath.Join(d.Private, "tmp")
	d.Kubeconfig = filepath.Join(d.Private, "kubeconfig")
	if err := errors.Join(
		writeFile(run, "env/extravars", in.ExtraVars, 0o600),
		writeFile(run, "env/settings", []byte(settings), 0o600),
		writeFile(run, "kubeconfig", in.Kubeconfig, 0o600),
	); err != nil {
		return err
	}
	inventory, err := writeInventory(run, d.Temp, in)
	if err != nil {
		return err
	}
	d.Inventory = filepath.Join(d.Private, inventory)
	return readable(run, "env/extravars", len(in.ExtraVars))
}

// readable makes sure that ansible-runner will pass the file on: it silently
// leaves out one that is missing or no regular file.
func readable(run *os.Root, name string, size int) error {
	info, err := run.Lstat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() != int64(size) {
		return fmt.Errorf("%q is not the regular file of %d bytes that was written", name, size)
	}
	return nil
}

// discard removes the run directory and lets the next run in.
func (d *Dir) discard() error {
	var errs []error
	// First what is open, because removing opens directories.
	if d.artifacts != nil {
		errs = append(errs, d.artifacts.Close())
	}
	clean := true
	if d.home != nil {
		err := d.root.discard(d.home, runName)
		clean = err == nil
		errs = append(errs, err, d.home.Close())
	}
	return errors.Join(append(errs, d.root.leave(d.uid, clean))...)
}

// ensureDir opens a directory of parent that is made if there is none. Anything
// else of that name, such as a symbolic link, makes way.
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

// createPrivate makes a file that must not exist, and only this user can open.
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

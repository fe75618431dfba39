package rundir

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	runName       = "run"
	artifactsName = "artifacts"
)

// runnerSettings are the settings of ansible-runner. It checks for a signal once per
// pexpect_timeout, 5 s by default; at 0.5 s a waiting run costs less than 0.05 % of a core.
// suppress_output_file prevents its own copies of the output.
const runnerSettings = `{"pexpect_timeout": 0.5, "suppress_output_file": true}`

// Inputs are the files that a run reads from its directory.
type Inputs struct {
	// ExtraVars is the content of env/extravars, byte for byte.
	ExtraVars []byte
	// Kubeconfig is the content of the run's kubeconfig.
	Kubeconfig []byte
	// Resource is GROUP/VERSION/KIND/NAMESPACE/NAME of the CR, without the namespace or the group where
	// there is none. The path of the inventory has these parts after three others, if they can be
	// directories. "" stands for any path.
	Resource string
	// Inventory is a file or directory to copy; "" is an inventory with only localhost.
	Inventory string
	// Python is the absolute path of localhost's interpreter in the default inventory; ""
	// lets Ansible choose.
	Python string
	// Pipelining enables pipelining for localhost in the default inventory; false lets
	// Ansible decide.
	Pipelining bool
}

// Dir is the directory of one run that has not ended. Its paths are absolute.
type Dir struct {
	// Private is ansible-runner's private data directory.
	Private string
	// Project is the working directory of ansible-playbook. It is empty.
	Project string
	// Output is where ansible-runner writes its own artifacts, which are not kept.
	Output string
	// Inventory is the file or directory for ansible-playbook's -i.
	Inventory string
	// Kubeconfig is the file for KUBECONFIG.
	Kubeconfig string
	// Temp is for temporary files of Ansible.
	Temp string
	// SharedTemp is the temporary directory for everything else. All runs share it, because
	// Python's Kubernetes client caches the API's discovery there. Other files are removed
	// when no run is left; temporary files of killed modules are removed as soon as every
	// run that may have started the module has ended. Nobody but this user can write there.
	// Its path is short enough for programs that put sockets there, as ansible-playbook does.
	SharedTemp string

	root      *Root
	uid       string
	crDir     *os.Root // ROOT/<uid>
	artifacts *os.Root // ROOT/<uid>/artifacts
	artifact  string   // the run's directory in artifacts
	remaining int64    // that the artifact may still take
}

// Prepare makes a new directory for a run of the CR, without any file of an earlier run: a
// file "args" or env/cmdline would make ansible-runner execute another command. id is the
// id of the run and part of the artifact's name. The error is ErrBusy if an earlier run of
// the CR has not ended.
func (r *Root) Prepare(uid, id string, in Inputs) (*Dir, error) {
	return r.prepare(uid, id, func(d *Dir, run *os.Root) error { return d.writeInputs(run, in) })
}

// PrepareFiles makes a new directory for a run of the CR like Prepare, for a program that
// reads only these files, by their names, and its kubeconfig.
func (r *Root) PrepareFiles(uid, id string, kubeconfig []byte, files map[string][]byte) (*Dir, error) {
	return r.prepare(uid, id, func(d *Dir, run *os.Root) error { return d.writeFiles(run, kubeconfig, files) })
}

func (r *Root) prepare(uid, id string, layOut func(d *Dir, run *os.Root) error) (*Dir, error) {
	if !validName.MatchString(uid) || !validName.MatchString(id) {
		return nil, fmt.Errorf("prepare run directory: UID %q and run id %q must be plain names", uid, id)
	}
	if !r.startRun(uid) {
		return nil, fmt.Errorf("prepare run directory of %q: %w", uid, ErrBusy)
	}
	d := &Dir{root: r, uid: uid}
	d.SharedTemp = r.SharedTemp()
	if err := d.prepare(id, layOut); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare run directory of %q: %w", uid, err), d.release())
	}
	return d, nil
}

// SharedTemp returns Dir.SharedTemp, which is the same for all runs.
func (r *Root) SharedTemp() string { return r.tempPath }

func (d *Dir) prepare(id string, layOut func(d *Dir, run *os.Root) error) error {
	var err error
	if d.crDir, err = ensureDir(d.root.root, d.uid); err != nil {
		return err
	}
	if d.artifacts, err = ensureDir(d.crDir, artifactsName); err != nil {
		return err
	}
	if err := d.root.removeEntry(d.crDir, runName); err != nil {
		return err
	}
	run, err := ensureDir(d.crDir, runName)
	if err != nil {
		return err
	}
	defer run.Close()
	if err := layOut(d, run); err != nil {
		return err
	}
	d.artifact = artifactName(time.Now(), id)
	if err := mkdir(d.artifacts, d.artifact); err != nil {
		return err
	}
	d.remaining = d.root.usage.limitPerCR() - sizeOnDisk(0) // The latter is for the directory itself.
	return nil
}

// writeInputs creates the files of a new run directory.
func (d *Dir) writeInputs(run *os.Root, in Inputs) error {
	d.Private = filepath.Join(d.root.path, d.uid, runName)
	// With pipelining, a module that has to make its remote temporary directory warns about
	// that. Without pipelining, Ansible makes the directory first.
	for _, name := range []string{"project", "output", "tmp", "tmp/" + remoteTempName, "env", "inventory"} {
		if err := mkdir(run, name); err != nil {
			return err
		}
	}
	d.Project, d.Output, d.Temp = filepath.Join(d.Private, "project"), filepath.Join(d.Private, "output"), filepath.Join(d.Private, "tmp")
	d.Kubeconfig = filepath.Join(d.Private, "kubeconfig")
	if err := errors.Join(
		writeFile(run, "env/extravars", in.ExtraVars, 0o600),
		writeFile(run, "env/settings", []byte(runnerSettings), 0o600),
		writeFile(run, "kubeconfig", in.Kubeconfig, 0o600),
	); err != nil {
		return err
	}
	inventory, err := writeInventory(run, d.Temp, in)
	if err != nil {
		return err
	}
	d.Inventory = filepath.Join(cmp.Or(d.root.named(d.uid, in.Resource), d.Private), inventory)
	return checkWritten(run, "env/extravars", len(in.ExtraVars))
}

// writeFiles creates the files of a new run directory for a program other than ansible-runner.
func (d *Dir) writeFiles(run *os.Root, kubeconfig []byte, files map[string][]byte) error {
	d.Private = filepath.Join(d.root.path, d.uid, runName)
	d.Project, d.Temp, d.Kubeconfig = filepath.Join(d.Private, "project"), filepath.Join(d.Private, "tmp"), filepath.Join(d.Private, "kubeconfig")
	errs := []error{mkdir(run, "project"), mkdir(run, "tmp"), writeFile(run, "kubeconfig", kubeconfig, 0o600)}
	for name, text := range files {
		errs = append(errs, writeFile(run, name, text, 0o600))
	}
	return errors.Join(errs...)
}

// checkWritten returns an error if the file is not a regular file of this size.
// ansible-runner silently ignores such a file.
func checkWritten(run *os.Root, name string, size int) error {
	info, err := run.Lstat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() != int64(size) {
		return fmt.Errorf("%q is not the regular file of %d bytes that was written", name, size)
	}
	return nil
}

// release removes the run directory and lets the next run of the CR start.
func (d *Dir) release() error {
	var errs []error
	// Close first, because removing needs file descriptors.
	if d.artifacts != nil {
		errs = append(errs, d.artifacts.Close())
	}
	clean := true
	errs = append(errs, d.root.removeNamed(d.uid))
	if d.crDir != nil {
		err := d.root.removeEntry(d.crDir, runName)
		clean = err == nil
		errs = append(errs, err, d.crDir.Close())
	}
	return errors.Join(append(errs, d.root.endRun(d.uid, clean))...)
}

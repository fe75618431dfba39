package stub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Build compiles the program of the module in root and makes the environment env
// from it.
func Build(ctx context.Context, root, env string) error {
	bin := filepath.Join(env, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return fmt.Errorf("make the environment: %w", err)
	}
	program := filepath.Join(bin, "ansible-runner")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", program, "./test/faults/stub/program")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the program of the stub: %w: %s", err, out)
	}
	var errs []error
	for _, name := range []string{"ansible-playbook", "python3", taskName} {
		link := filepath.Join(bin, name)
		if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
		errs = append(errs, os.Symlink("ansible-runner", link))
	}
	return errors.Join(errs...)
}

const taskName = "stub-task"

// Task is the program of the environment that does what a play does, as a task of
// the real Ansible. Its argument is the name of the playbook.
func Task(env string) string { return filepath.Join(env, "bin", taskName) }

// Live is the lock that a run holds while it is live.
type Live struct{ file *os.File }

// Enter takes the lock of a CR in the stub's directory. It is false when another
// run is live. The kernel gives the lock back however the process ends.
func Enter(dir, uid string) (*Live, bool, error) {
	if err := os.MkdirAll(filepath.Join(dir, liveName), 0o700); err != nil {
		return nil, false, fmt.Errorf("keep the lock of %q: %w", uid, err)
	}
	file, err := os.OpenFile(filepath.Join(dir, liveName, uid), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false, fmt.Errorf("keep the lock of %q: %w", uid, err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err != nil && !errors.Is(err, unix.EWOULDBLOCK) {
		return nil, false, errors.Join(fmt.Errorf("lock %q: %w", uid, err), file.Close())
	}
	return &Live{file}, err == nil, nil
}

// Leave gives the lock back.
func (l *Live) Leave() error { return l.file.Close() }

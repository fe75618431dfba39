package rundir

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const (
	// lockTimeout is how long Open waits for a lock that somebody else holds.
	lockTimeout  = 5 * time.Second
	lockInterval = 20 * time.Millisecond
)

// lockRoot locks the directory until the lock's file is closed.
func (r *Root) lockRoot() error {
	var err error
	if r.lock, err = r.root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if err := r.lock.Chmod(0o600); err != nil {
		return err
	}
	return explainLock(waitForLock(r.lock))
}

// waitForLock retries because of a predecessor that was killed while it was starting a
// process: that process holds the lock until it executes its program, and has no mark by
// which it could be ended before.
func waitForLock(file *os.File) error {
	timeout := time.After(lockTimeout)
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-timeout:
			return err
		case <-time.After(lockInterval):
		}
	}
}

func explainLock(err error) error {
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return fmt.Errorf("in use by another manager; give each manager a run directory of its own: %w", err)
	case err != nil:
		return fmt.Errorf("can't be locked; choose one on a disk of this machine: %w", err)
	}
	return nil
}

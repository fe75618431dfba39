package rundir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// lockTimeout is how long Open waits for a lock.
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
	if err := waitForLock(r.lock); err != nil {
		return explainLock(err, holderOf(r.lock))
	}
	sign(r.lock)
	return nil
}

// sign writes the holder into the file of a lock, if the disk is not full.
func sign(lock *os.File) {
	host, _ := os.Hostname() // The name of the pod, in a cluster.
	_ = lock.Truncate(0)
	_, _ = lock.WriteAt(fmt.Appendf(nil, "process %d on %s\n", os.Getpid(), host), 0)
}

// maxHolder is more than sign writes.
const maxHolder = 512

// holderOf returns the holder of a lock; "" if it is not known, as before the holder has written it.
func holderOf(lock *os.File) string {
	text, err := io.ReadAll(io.NewSectionReader(lock, 0, maxHolder))
	if err != nil {
		return ""
	}
	return strings.Trim(strconv.Quote(strings.TrimSpace(string(text))), `"`)
}

// waitForLock retries because of a predecessor that was killed while it was starting a
// process: that process holds the lock until it executes its program, and lacks until then the
// variables by which it could be ended.
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

// explainLock says in words why a lock could not be had. holder is who has it, as far as that is known.
func explainLock(err error, holder string) error {
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("can't be locked; choose one on a disk of this machine: %w", err)
	}
	if holder != "" {
		holder = " (" + holder + ")"
	}
	return fmt.Errorf("in use by another manager%s; give each manager a run directory of its own: %w", holder, err)
}

package proctree

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// The variables that mark the processes of runs, beside the one of each run.
const (
	rootVariable     = "ENSIGN_RUN_ROOT"
	instanceVariable = "ENSIGN_MANAGER"
)

// Owner is what owns runs: one manager process and its run directory. The zero
// value owns no directory; its runs are found by descent and their own marks.
// Methods may be called at the same time.
type Owner struct {
	dir, instance string

	mu       sync.Mutex
	children map[int]bool // processes of ours that somebody waits for
}

// NewOwner makes the owner of the runs in dir, an absolute path without symbolic
// links. instance tells the processes that it starts from those that earlier and
// later owners of the same directory start; it is a plain name.
func NewOwner(dir, instance string) *Owner {
	return &Owner{dir: dir, instance: instance}
}

// Environ is what marks the processes of all runs, as "NAME=value".
func (o *Owner) Environ() []string {
	if o.dir == "" {
		return nil
	}
	return []string{rootVariable + "=" + o.dir, instanceVariable + "=" + o.instance}
}

// EndAll ends what runs of the directory are left, whichever owner started them: TERM
// at once, KILL after grace. The caller must know that no other owner is alive.
func (o *Owner) EndAll(grace time.Duration) Ended {
	return o.processes(rootVariable + "=" + o.dir).end(grace)
}

// EndOwn ends what runs of this owner's instance are left: TERM at once, KILL after
// grace.
func (o *Owner) EndOwn(grace time.Duration) Ended {
	return o.processes(instanceVariable + "=" + o.instance).end(grace)
}

func (o *Owner) processes(mark string) *processes {
	return &processes{marks: []string{mark}, spared: lineage(), alien: o.alien, known: map[identity]bool{}}
}

// alien is true for a process that sees another directory at the path of ours: it
// lives in another container, whose manager chose the same path.
func (o *Owner) alien(pid int) bool {
	ours, err := os.Stat(o.dir)
	if err != nil {
		return false
	}
	theirs, err := os.Stat(filepath.Join(procPath(pid, "root"), o.dir))
	return err == nil && !os.SameFile(ours, theirs)
}

// lineage is this process with its ancestors.
func lineage() map[int]bool {
	found := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !found[pid]; {
		found[pid] = true
		p, err := readProc(pid)
		if err != nil {
			break
		}
		pid = p.parent
	}
	return found
}

func runMark(nonce int64) string { return "JOB_ID=" + strconv.FormatInt(nonce, 10) }

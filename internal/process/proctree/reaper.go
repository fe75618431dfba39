package proctree

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// All processes of runs have these variables. JOB_ID identifies the run.
const (
	rootVariable     = "ENSIGN_RUN_ROOT"
	instanceVariable = "ENSIGN_MANAGER"
)

// Reaper starts the processes of one manager's runs with an environment that identifies
// them, and ends them. The zero value has no run directory; then processes are found only by
// descent and by the number of their run.
// Methods may be called concurrently.
type Reaper struct {
	dir, instance string

	mu       sync.Mutex
	children map[int]bool // by pid: children that a caller waits for
}

// NewReaper returns the Reaper for the runs in dir, an absolute path without symbolic links.
// instance is a name without special characters. It must differ from the instances of
// earlier and later managers of the same directory.
func NewReaper(dir, instance string) *Reaper {
	return &Reaper{dir: dir, instance: instance}
}

// Environ returns the variables that identify the processes of all runs, as "NAME=value".
func (r *Reaper) Environ() []string {
	if r.dir == "" {
		return nil
	}
	return []string{rootVariable + "=" + r.dir, instanceVariable + "=" + r.instance}
}

// EndAll ends the processes of all runs in the directory, whichever manager started them:
// TERM at once, KILL after grace. The caller must know that no other manager is running.
func (r *Reaper) EndAll(grace time.Duration) Ended {
	return r.processes(rootVariable + "=" + r.dir).end(grace)
}

// EndOwn ends the processes of the runs that this manager started: TERM at once, KILL after
// grace.
func (r *Reaper) EndOwn(grace time.Duration) Ended {
	return r.processes(instanceVariable + "=" + r.instance).end(grace)
}

func (r *Reaper) processes(entry string) *processes {
	return &processes{entries: []string{entry}, spared: lineage(), alien: r.alien, known: map[identity]bool{}}
}

// alien reports whether a process sees another directory at the path of the run directory.
// Then it runs in another container, whose manager uses the same path.
func (r *Reaper) alien(pid int) bool {
	ours, err := os.Stat(r.dir)
	if err != nil {
		return false
	}
	theirs, err := os.Stat(filepath.Join(procPath(pid, "root"), r.dir))
	return err == nil && !os.SameFile(ours, theirs)
}

// lineage returns the pids of this process and its ancestors.
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

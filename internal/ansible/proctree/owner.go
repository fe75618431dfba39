package proctree

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// These variables mark the processes of all runs. JOB_ID marks those of one run.
const (
	rootVariable     = "ENSIGN_RUN_ROOT"
	instanceVariable = "ENSIGN_MANAGER"
)

// Owner stands for one manager process and its run directory. The zero value has no
// directory; the processes of its runs are found by descent and by the marks of the runs.
// Methods may be called concurrently.
type Owner struct {
	dir, instance string

	mu       sync.Mutex
	children map[int]bool // by pid: children that a caller waits for
}

// NewOwner returns the Owner for the runs in dir, an absolute path without symbolic links.
// instance is a name without special characters. It must differ from the instances of
// earlier and later managers of the same directory.
func NewOwner(dir, instance string) *Owner {
	return &Owner{dir: dir, instance: instance}
}

// Environ returns the variables that mark the processes of all runs, as "NAME=value".
func (o *Owner) Environ() []string {
	if o.dir == "" {
		return nil
	}
	return []string{rootVariable + "=" + o.dir, instanceVariable + "=" + o.instance}
}

// EndAll ends the processes of all runs in the directory, whichever manager started them:
// TERM at once, KILL after grace. The caller must know that no other manager is running.
func (o *Owner) EndAll(grace time.Duration) Ended {
	return o.processes(rootVariable + "=" + o.dir).end(grace)
}

// EndOwn ends the processes of the runs that this manager started: TERM at once, KILL after
// grace.
func (o *Owner) EndOwn(grace time.Duration) Ended {
	return o.processes(instanceVariable + "=" + o.instance).end(grace)
}

func (o *Owner) processes(mark string) *processes {
	return &processes{marks: []string{mark}, spared: lineage(), alien: o.alien, known: map[identity]bool{}}
}

// alien reports whether a process sees another directory at the path of the run directory.
// Then it runs in another container, whose manager uses the same path.
func (o *Owner) alien(pid int) bool {
	ours, err := os.Stat(o.dir)
	if err != nil {
		return false
	}
	theirs, err := os.Stat(filepath.Join(procPath(pid, "root"), o.dir))
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

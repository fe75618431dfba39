package proctree

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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

// closePatience is ample for the removal of directories.
const closePatience = 2 * time.Second

// Owner is what owns runs: one manager process and its run directory. The zero
// value owns no directory; its runs are found by descent and their own marks.
// Methods may be called at the same time.
type Owner struct {
	dir, instance string
	groups        group // with a directory for each instance, and in there for each run
	grouped       bool  // runs can be started in groups

	mu       sync.Mutex
	children map[int]bool // processes of ours that somebody waits for
}

// NewOwner makes the owner of the runs in dir, an absolute path without symbolic
// links. instance tells the processes that it starts from those that earlier and
// later owners of the same directory start; it is a plain name.
func NewOwner(dir, instance string) *Owner {
	o := &Owner{dir: dir, instance: instance}
	if own := ownGroup(); own != "" {
		// A successor finds this, if it is started in the same place.
		sum := sha256.Sum256([]byte(dir))
		o.groups = own + group("/ensign-"+hex.EncodeToString(sum[:8]))
	}
	return o
}

// Group makes the control group of this owner, after which runs are started in
// groups below it. The error says why they can't.
func (o *Owner) Group() error {
	if err := o.own().usable(); err != nil {
		return err
	}
	o.grouped = true
	return nil
}

// own is the group of this instance.
func (o *Owner) own() group {
	if o.groups == "" {
		return ""
	}
	return o.groups + "/" + group(o.instance)
}

// Environ is what marks the processes of all runs, as "NAME=value".
func (o *Owner) Environ() []string {
	if o.dir == "" {
		return nil
	}
	return []string{rootVariable + "=" + o.dir, instanceVariable + "=" + o.instance}
}

// EndAll ends what runs of the directory are left, whichever owner started them,
// and removes their control groups: TERM at once, KILL after grace. The caller
// must know that no other owner is alive.
func (o *Owner) EndAll(grace time.Duration) Ended {
	f := o.processes(rootVariable+"="+o.dir, o.groups, 2)
	ended := f.end(grace)
	_ = o.groups.remove() // What is left there is in use, or goes with the next owner.
	return ended
}

// EndOwn ends what runs of this owner's instance are left: TERM at once, KILL after
// grace.
func (o *Owner) EndOwn(grace time.Duration) Ended {
	return o.processes(instanceVariable+"="+o.instance, o.own(), 1).end(grace)
}

// Close removes the control groups of this owner, whose runs have ended. What is
// left for want of a descriptor, which nobody can wait for at the end, goes with
// the next owner.
func (o *Owner) Close() error {
	if o.groups == "" {
		return nil
	}
	removed := make(chan error, 1)
	go func() { removed <- o.own().remove() }()
	select {
	case err := <-removed:
		if err == nil {
			_ = os.Remove(string(o.groups)) // It stays where another owner's are in it.
		}
		return err
	case <-time.After(closePatience):
		return fmt.Errorf("the control group %q can't be looked at", o.own())
	}
}

func (o *Owner) processes(mark string, g group, depth int) *processes {
	return &processes{marks: []string{mark}, group: g, depth: depth, spared: lineage(), alien: o.alien, known: map[identity]bool{}}
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

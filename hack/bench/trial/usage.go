package trial

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

const (
	// tick is the unit of the kernel's times of processes: USER_HZ is 100 everywhere.
	tick = 10 * time.Millisecond
	// sampling is the pause between samples of memory, which cost processor time.
	sampling = 20 * time.Millisecond
)

// process is a live process as it stood.
type process struct {
	procfs.Proc

	stat procfs.ProcStat
}

// tree lists a live process and all live ones that descend from it; none where the
// process has ended. What ends meanwhile may be missing.
func tree(root int) []process {
	all, _ := procfs.AllProcs() // Without /proc there are none.
	var found []process
	children := map[int][]process{}
	for _, p := range all {
		stat, err := p.Stat()
		switch {
		case err != nil: // It has ended.
		case p.PID == root:
			found = append(found, process{p, stat})
		default:
			children[stat.PPID] = append(children[stat.PPID], process{p, stat})
		}
	}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].PID]...)
	}
	return found
}

// treeTime is the processor time of a live process and of all that ever descended from
// it, but for what ended and was waited for by nobody of the tree. Differences of it are
// true to a tick for each live process.
func treeTime(root int) (time.Duration, error) {
	ticks := 0
	processes := tree(root)
	for _, p := range processes {
		ticks += int(p.stat.UTime) + int(p.stat.STime) + p.stat.CUTime + p.stat.CSTime
	}
	if len(processes) == 0 {
		return 0, fmt.Errorf("there is no process %d", root)
	}
	return time.Duration(ticks) * tick, nil
}

// memory is the proportional set size, in MiB, of those processes of a tree that are not
// among others: a page that n processes share counts as an n-th of one in each.
func memory(root int, others map[int]bool) float64 {
	var bytes uint64
	for _, p := range tree(root) {
		if !others[p.PID] {
			rollup, _ := p.ProcSMapsRollup() // What has ended needs none.
			bytes += rollup.Pss
		}
	}
	return float64(bytes) / (1 << 20)
}

// pids are those of a tree's processes whose command line does not hold the text; all of
// them for "".
func pids(root int, text string) map[int]bool {
	found := map[int]bool{}
	for _, p := range tree(root) {
		line, _ := p.CmdLine() // What has ended has none.
		found[p.PID] = text == "" || !strings.Contains(strings.Join(line, " "), text)
	}
	return found
}

// peak takes samples while work is done, and gives the highest.
func peak(sample func() float64, work func() error) (highest float64, err error) {
	done := make(chan error)
	go func() { done <- work() }()
	ticker := time.NewTicker(sampling)
	defer ticker.Stop()
	for {
		highest = max(highest, sample())
		select {
		case err := <-done:
			return highest, err
		case <-ticker.C:
		}
	}
}

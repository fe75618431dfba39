package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/ensign-operator/ensign/test/harness"
)

const (
	// tick is the unit of the kernel's times of processes: USER_HZ is 100 everywhere.
	tick = 10 * time.Millisecond
	// sampling is the pause between samples of memory, which cost processor time.
	sampling = 20 * time.Millisecond
)

// treeTime is the processor time of a live process and of all that ever descended from
// it, but for what ended and was waited for by nobody of the tree. Differences of it are
// true to a tick for each live process.
func treeTime(root int) (total time.Duration, err error) {
	processes := harness.Tree(root)
	for _, p := range processes {
		total += tick * time.Duration(int(p.UTime)+int(p.STime)+p.CUTime+p.CSTime)
	}
	if len(processes) == 0 {
		err = fmt.Errorf("there is no process %d", root)
	}
	return total, err
}

// memory is what a manager's processes need, in MiB of proportional set size: when no run
// is live, the servers for warm runs and all of them, and the most while runs were live.
type memory struct{ servers, idle, peak float64 }

// treeMemory is the proportional set size, in MiB, of those processes of a tree whose command
// line has the text: a page that n processes share counts as an n-th of one in each.
func treeMemory(root int, text string) float64 {
	var bytes uint64
	for _, stat := range harness.Tree(root) {
		p, _ := procfs.NewProc(stat.PID) // What has ended needs none, and has no line.
		if line, _ := p.CmdLine(); strings.Contains(strings.Join(line, " "), text) {
			rollup, _ := p.ProcSMapsRollup()
			bytes += rollup.Pss
		}
	}
	return float64(bytes) / (1 << 20)
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

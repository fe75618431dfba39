package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/test/harness"
)

// run is one run of a CR that was changed, as times that follow each other.
type run struct {
	changed time.Time // when the change of the CR was sent
	// Started and Ended are the manager's, from before the run's directory is made
	// until no process of the run is left.
	Started          time.Time `json:"started"`
	Ended            time.Time `json:"ended"`
	heard            time.Time // when the manager had the first job event
	firstTask, stats time.Time // Ansible's own times of these events
	reported         time.Time // when a watch of the CR told what came out
	tasks            int       // how many have started
	cpu              time.Duration
}

// record reads the manager's record of the one run that a CR has had since it was changed.
func record(directory string, changed time.Time) (run, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return run{}, fmt.Errorf("read the records of runs: %w", err)
	}
	var found []run
	for _, entry := range slices.Backward(entries) { // The newest is the last by name.
		one, err := read(filepath.Join(directory, entry.Name()))
		if err != nil {
			return run{}, fmt.Errorf("read the record of a run in %q: %w", directory, err)
		}
		if one.Started.Before(changed) {
			break
		}
		one.changed = changed
		found = append(found, one)
	}
	if len(found) != 1 {
		return run{}, fmt.Errorf("%d runs are recorded for one change in %q", len(found), directory)
	}
	return found[0], nil
}

func read(directory string) (r run, err error) {
	outcome, err := os.ReadFile(filepath.Join(directory, "outcome.json"))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(outcome, &r); err != nil {
		return r, err
	}
	events, err := os.Open(filepath.Join(directory, "events.jsonl"))
	if err != nil {
		return r, err
	}
	defer events.Close()
	for lines := json.NewDecoder(events); lines.More(); {
		var event struct {
			Time  time.Time     `json:"time"`
			Event jobevent.Kind `json:"event"`
		}
		if err := lines.Decode(&event); err != nil {
			return r, err
		}
		if r.heard.IsZero() {
			r.heard = event.Time
		}
		switch event.Event {
		case jobevent.TaskStart:
			if r.tasks == 0 {
				r.firstTask = event.Time
			}
			r.tasks++
		case jobevent.Stats:
			r.stats = event.Time
		}
	}
	if r.tasks == 0 || r.stats.IsZero() || r.Ended.IsZero() {
		return r, fmt.Errorf("a run with %d tasks and stats at %s is no whole one", r.tasks, r.stats)
	}
	if made := birth(events.Name()); made.After(r.heard) {
		r.heard = made
	}
	return r, nil
}

// birth is when a file was made, as that of the events is when the first one comes: the
// zero value where the file system does not tell.
func birth(path string) (made time.Time) {
	var s unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BTIME, &s); err == nil && s.Mask&unix.STATX_BTIME != 0 {
		made = time.Unix(s.Btime.Sec, int64(s.Btime.Nsec))
	}
	return made
}

// launches counts how runs were made, warm by forks of both programs, and modules of warm runs
// that were refused: started cold.
type launches struct{ Warm, Cold, Refused int }

func (l launches) plus(m launches) launches {
	return launches{l.Warm + m.Warm, l.Cold + m.Cold, l.Refused + m.Refused}
}

// launchesOf reads metrics. Negative counts are those of before.
func launchesOf(metrics string, sign int) launches {
	sum := func(expression string) int {
		total := 0
		for _, match := range regexp.MustCompile(`(?m)^(?:ansible|ensign)_operator_`+expression+` (\d+)$`).FindAllStringSubmatch(metrics, -1) {
			n, _ := strconv.Atoi(match[1]) // They are digits.
			total += n
		}
		return sign * total
	}
	return launches{
		Warm: sum(`runs_total\{GVK=.*mode="warm"\}`), Cold: sum(`runs_total\{GVK=.*mode="cold"\}`),
		Refused: sum(`module_runs_total\{mode="cold",.*\}`),
	}
}

// tick is the unit of the kernel's times of processes: USER_HZ is 100 everywhere.
const tick = 10 * time.Millisecond

// treeTime is the processor time of a process and of all its descendants, except for ended
// ones that no process of the tree has waited for. Differences of it are exact to a tick for each
// process that still runs.
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

// ownTime is the processor time of a process alone.
func ownTime(pid int) (time.Duration, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := p.Stat()
	return tick * time.Duration(stat.UTime+stat.STime), err
}

// memory is the memory of a manager's processes, in MiB of proportional set size. It has the
// servers for warm runs alone, all processes without a run, and the peak with runs.
type memory struct{ servers, idle, peak float64 }

// treeMemory is the proportional set size, in MiB, of those processes of a tree whose command
// line has the text: a page that n processes share counts as an n-th of one in each.
func treeMemory(root int, text string) float64 {
	var bytes uint64
	for _, stat := range harness.Tree(root) {
		p, _ := procfs.NewProc(stat.PID) // A process that has ended needs none, and has no line.
		if line, _ := p.CmdLine(); strings.Contains(strings.Join(line, " "), text) {
			rollup, _ := p.ProcSMapsRollup()
			bytes += rollup.Pss
		}
	}
	return float64(bytes) / (1 << 20)
}

// measure takes the memory of a tree before and while work is done. The cost of samples is part of
// the work.
func measure(root func() int, work func() error) (m memory, err error) {
	m.servers, m.idle = treeMemory(root(), "/serve.py "), treeMemory(root(), "")
	end := harness.Every(20*time.Millisecond, func() { m.peak = max(m.peak, treeMemory(root(), "")) })
	err = work()
	end()
	return m, err
}

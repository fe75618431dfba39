package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
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

// record reads what the manager kept of the one run that a CR has had since it was
// changed.
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

// launches counts how runs were made.
type launches struct {
	// Warm are those whose ansible-runner and ansible-playbook were forked.
	Warm, Cold int
	// Refused are modules of warm runs that were started cold.
	Refused int
}

// share is that of the runs which were surely warm from their beginning to their end:
// each module that was not may have been another run's.
func (l launches) share() float64 {
	if all := l.Warm + l.Cold; all > 0 {
		return float64(max(0, l.Warm-l.Refused)) / float64(all)
	}
	return 0
}

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

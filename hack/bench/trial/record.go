package trial

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
)

// Run is one run of a CR that was changed, as times that follow each other.
type Run struct {
	// Changed is when the change of the CR was sent.
	Changed time.Time `json:"-"`
	// Started and Ended are the manager's, from before the run's directory is made
	// until no process of the run is left.
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	// Heard is when the manager had the first job event.
	Heard time.Time `json:"-"`
	// FirstTask and Stats are Ansible's own times of these events.
	FirstTask time.Time `json:"-"`
	Stats     time.Time `json:"-"`
	// Reported is when a watch of the CR told what came out.
	Reported time.Time `json:"-"`
	// Tasks is how many have started.
	Tasks int `json:"-"`
}

// record reads what the manager kept of the one run that a CR has had since it was
// changed.
func record(directory string, changed time.Time) (Run, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return Run{}, fmt.Errorf("read the records of runs: %w", err)
	}
	var found []Run
	for _, entry := range slices.Backward(entries) { // The newest is the last by name.
		run, err := read(filepath.Join(directory, entry.Name()))
		if err != nil {
			return Run{}, fmt.Errorf("read the record of a run in %q: %w", directory, err)
		}
		if run.Started.Before(changed) {
			break
		}
		run.Changed = changed
		found = append(found, run)
	}
	if len(found) != 1 {
		return Run{}, fmt.Errorf("%d runs are recorded for one change in %q", len(found), directory)
	}
	return found[0], nil
}

func read(directory string) (run Run, err error) {
	outcome, err := os.ReadFile(filepath.Join(directory, "outcome.json"))
	if err != nil {
		return run, err
	}
	if err := json.Unmarshal(outcome, &run); err != nil {
		return run, err
	}
	events, err := os.Open(filepath.Join(directory, "events.jsonl"))
	if err != nil {
		return run, err
	}
	defer events.Close()
	for lines := json.NewDecoder(events); lines.More(); {
		var event struct {
			Time  time.Time     `json:"time"`
			Event jobevent.Kind `json:"event"`
		}
		if err := lines.Decode(&event); err != nil {
			return run, err
		}
		if run.Heard.IsZero() {
			run.Heard = event.Time
		}
		switch event.Event {
		case jobevent.TaskStart:
			if run.Tasks == 0 {
				run.FirstTask = event.Time
			}
			run.Tasks++
		case jobevent.Stats:
			run.Stats = event.Time
		}
	}
	if run.Tasks == 0 || run.Stats.IsZero() || run.Ended.IsZero() {
		return run, fmt.Errorf("a run with %d tasks and stats at %s is no whole one", run.Tasks, run.Stats)
	}
	if made := birth(events.Name()); made.After(run.Heard) {
		run.Heard = made
	}
	return run, nil
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

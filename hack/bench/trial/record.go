package trial

import (
	"bufio"
	"bytes"
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

// Phases of a run that are known by name.
const (
	UntilEvent  = "start → first event"
	Tasks       = "tasks"
	UntilEnd    = "stats → end"
	UntilStatus = "end → status"
)

// Phase is a part of the time of a run.
type Phase struct {
	Name  string
	Taken time.Duration
}

// Phases are all there are from the change to the status, in their order.
func (r Run) Phases() []Phase {
	return []Phase{
		{"change → start", r.Started.Sub(r.Changed)},
		{UntilEvent, r.Heard.Sub(r.Started)},
		{"→ first task", r.FirstTask.Sub(r.Heard)},
		{Tasks, r.Stats.Sub(r.FirstTask)},
		{UntilEnd, r.Ended.Sub(r.Stats)},
		{UntilStatus, r.Reported.Sub(r.Ended)},
	}
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
	path := filepath.Join(directory, "events.jsonl")
	events, err := os.ReadFile(path)
	if err != nil {
		return run, err
	}
	lines := bufio.NewScanner(bytes.NewReader(events))
	lines.Buffer(nil, len(events)+1)
	for lines.Scan() {
		if err := take(&run, lines.Bytes()); err != nil {
			return run, err
		}
	}
	if run.Tasks == 0 || run.Stats.IsZero() || run.Ended.IsZero() {
		return run, fmt.Errorf("a run with %d tasks and stats at %s is no whole one", run.Tasks, run.Stats)
	}
	// The file is made when the first event comes, where the file system tells that.
	var s unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BTIME, &s); err == nil && s.Mask&unix.STATX_BTIME != 0 {
		if made := time.Unix(s.Btime.Sec, int64(s.Btime.Nsec)); made.After(run.Heard) {
			run.Heard = made
		}
	}
	return run, lines.Err()
}

// take adds an event to a run.
func take(r *Run, line []byte) error {
	var event struct {
		Time  time.Time     `json:"time"`
		Event jobevent.Kind `json:"event"`
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return err
	}
	if r.Heard.IsZero() {
		r.Heard = event.Time
	}
	switch event.Event {
	case jobevent.TaskStart:
		if r.Tasks++; r.Tasks == 1 {
			r.FirstTask = event.Time
		}
	case jobevent.Stats:
		r.Stats = event.Time
	}
	return nil
}

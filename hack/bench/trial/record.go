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
	Changed time.Time
	// Started and Ended are the manager's, from before the run's directory is made
	// until no process of the run is left.
	Started time.Time
	// Heard is when the manager had the first job event.
	Heard time.Time
	// FirstTask and Stats are Ansible's own times of these events.
	FirstTask, Stats time.Time
	Ended            time.Time
	// Reported is when a watch of the CR told what came out.
	Reported time.Time
	// Tasks is how many have started.
	Tasks int
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
			return Run{}, err
		}
		if run.Started.Before(changed) {
			break
		}
		found = append(found, run)
	}
	if len(found) != 1 {
		return Run{}, fmt.Errorf("%d runs are recorded for one change in %q", len(found), directory)
	}
	found[0].Changed = changed
	return found[0], nil
}

func read(directory string) (Run, error) {
	outcome, err := os.ReadFile(filepath.Join(directory, "outcome.json"))
	if err != nil {
		return Run{}, fmt.Errorf("read a run's record: %w", err)
	}
	path := filepath.Join(directory, "events.jsonl")
	events, err := os.ReadFile(path)
	if err != nil {
		return Run{}, fmt.Errorf("read a run's record: %w", err)
	}
	run, err := parse(outcome, events)
	if err != nil {
		return Run{}, fmt.Errorf("read %q: %w", directory, err)
	}
	// The file is made when the first event comes.
	if made, err := birth(path); err == nil && made.After(run.Heard) {
		run.Heard = made
	}
	return run, nil
}

// parse reads a record. Heard is the event's own time.
func parse(outcome, events []byte) (Run, error) {
	var run Run
	if err := json.Unmarshal(outcome, &struct {
		Started *time.Time `json:"started"`
		Ended   *time.Time `json:"ended"`
	}{&run.Started, &run.Ended}); err != nil {
		return Run{}, fmt.Errorf("outcome.json: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(events))
	lines.Buffer(nil, len(events)+1)
	for lines.Scan() {
		var event struct {
			Time  time.Time     `json:"time"`
			Event jobevent.Kind `json:"event"`
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return Run{}, fmt.Errorf("events.jsonl: %w", err)
		}
		take(&run, event.Event, event.Time)
	}
	if run.Tasks == 0 || run.Stats.IsZero() || run.Ended.IsZero() {
		return Run{}, fmt.Errorf("a run with %d tasks and stats at %s is no whole one", run.Tasks, run.Stats)
	}
	return run, lines.Err()
}

// take adds an event to a run.
func take(r *Run, kind jobevent.Kind, at time.Time) {
	if r.Heard.IsZero() {
		r.Heard = at
	}
	switch kind {
	case jobevent.TaskStart:
		if r.Tasks++; r.Tasks == 1 {
			r.FirstTask = at
		}
	case jobevent.Stats:
		r.Stats = at
	}
}

// birth is when a file was made; an error where the file system does not tell.
func birth(path string) (time.Time, error) {
	var s unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BTIME, &s); err != nil {
		return time.Time{}, err
	}
	if s.Mask&unix.STATX_BTIME == 0 {
		return time.Time{}, unix.ENOTSUP
	}
	return time.Unix(s.Btime.Sec, int64(s.Btime.Nsec)), nil
}

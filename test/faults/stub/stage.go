package stub

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	socketName  = "stage.sock"
	journalName = "journal.jsonl"
)

// Phase is where a run is.
type Phase string

// The phases that a run tells of, in their order.
const (
	Spawned    Phase = "spawned"     // ansible-runner has started, and nothing else
	FirstEvent Phase = "first-event" // the play's first event is printed
	MidTask    Phase = "mid-task"    // a task is at work
	Stats      Phase = "stats"       // the stats are printed
	Exiting    Phase = "exiting"     // ansible-runner is about to exit
)

// Announcement is what a run tells a Stage.
type Announcement struct {
	Phase  Phase  `json:"phase"`
	Record Record `json:"record"`
}

// Stage is told of every phase of the runs of a stub, and lets them go on. Once it is
// closed, no further run announces itself; those go on unasked.
type Stage struct{ net.Listener }

// OpenStage makes the stage of the stub in dir. met is called for each
// announcement, at the same time for those of several runs, and the run goes on
// when it returns.
func OpenStage(dir string, met func(Announcement)) (*Stage, error) {
	listener, err := net.Listen("unix", filepath.Join(dir, socketName))
	if err != nil {
		return nil, fmt.Errorf("open the stage: %w", err)
	}
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			go func() {
				defer func() { _ = conn.Close() }() // The end of the connection is the permission.
				var a Announcement
				if json.NewDecoder(conn).Decode(&a) == nil {
					met(a)
				}
			}()
		}
	}()
	return &Stage{listener}, nil
}

// announce tells the stage of the stub in dir, if there is one, and waits until
// the run may go on.
func announce(dir string, a Announcement) error {
	conn, err := net.DialTimeout("unix", filepath.Join(dir, socketName), time.Minute)
	if err != nil {
		return nil // No stage, or one that is closed, holds nobody up.
	}
	defer func() { _ = conn.Close() }()
	if err := json.NewEncoder(conn).Encode(a); err != nil {
		return fmt.Errorf("announce %s: %w", a.Phase, err)
	}
	_, _ = conn.Read(make([]byte, 1)) // It ends when the stage is done.
	return nil
}

// ReadJournal reads the records of all runs of the stub in dir.
func ReadJournal(dir string) ([]Record, error) {
	content, err := os.ReadFile(filepath.Join(dir, journalName)) //nolint:gosec // The directory is of its own environment.
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the journal of runs: %w", err)
	}
	var records []Record
	for line := range bytes.Lines(content) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // It is being written.
		}
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("read the journal of runs: %w", err)
		}
		records = append(records, r)
	}
	return records, nil
}

// Write adds the record to the journal of the stub in dir. Lines of several
// processes do not mix.
func (r Record) Write(dir string) error {
	r.Time = time.Now()
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode a record: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, journalName), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // The directory is of its own environment.
	if err != nil {
		return fmt.Errorf("write the journal of runs: %w", err)
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

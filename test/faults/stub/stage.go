package stub

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	socketName  = "stage.sock"
	journalName = "journal.jsonl"
)

// OpenStage makes the stage of the stub in dir, to which its runs report every phase:
// what a record says is then a point of plans, the last one that ansible-runner is about to
// exit. met is called for each, at the same time for those of several runs, and the
// run goes on when it returns. Once the stage is closed, runs go on unasked.
func OpenStage(dir string, met func(Record)) (io.Closer, error) {
	listener, err := net.Listen("unix", filepath.Join(dir, socketName))
	if err != nil {
		return nil, fmt.Errorf("open the stage: %w", err)
	}
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			go func() {
				defer func() { _ = conn.Close() }() // The end of the connection is the permission.
				var r Record
				if json.NewDecoder(conn).Decode(&r) == nil {
					met(r)
				}
			}()
		}
	}()
	return listener, nil
}

// announce tells the stage of the stub in dir, if there is one, and waits until
// the run may go on.
func announce(dir string, r Record) error {
	conn, err := net.DialTimeout("unix", filepath.Join(dir, socketName), time.Minute)
	if err != nil {
		return nil // No stage, or one that is closed, holds nobody up.
	}
	defer func() { _ = conn.Close() }()
	if err := json.NewEncoder(conn).Encode(r); err != nil {
		return fmt.Errorf("announce %s: %w", r.What, err)
	}
	_, _ = conn.Read(make([]byte, 1)) // It ends when the stage is done.
	return nil
}

// ReadJournal reads the records of all runs of the stub in dir.
func ReadJournal(dir string) ([]Record, error) {
	content, err := os.ReadFile(filepath.Join(dir, journalName))
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
	file, err := os.OpenFile(filepath.Join(dir, journalName), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("write the journal of runs: %w", err)
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// Package audit reads from the API server's audit log what a manager has written.
package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Write is a write that the API server has accepted.
type Write struct{ Verb, Resource, Subresource, Name string }

// entry is what is read of an Event of audit.k8s.io/v1.
type entry struct {
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	URI       string `json:"requestURI"`
	Object    struct {
		Namespace   string `json:"namespace"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// Log is a log from a certain place on.
type Log struct {
	path string
	from int64
}

// Open remembers where the log ends.
func Open(path string) (Log, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Log{}, fmt.Errorf("open the audit log: %w", err)
	}
	return Log{path, info.Size()}, nil
}

// Writes returns the accepted writes in the namespace by clients whose user agent
// begins so, in the order in which they were answered. Dry runs are none.
func (l Log) Writes(namespace, agent string) (found []Write, err error) {
	err = l.accepted(namespace, func(e entry) {
		if !e.dryRun() && strings.HasPrefix(e.UserAgent, agent) {
			found = append(found, Write{e.Verb, e.Object.Resource, e.Object.Subresource, e.Object.Name})
		}
	})
	return found, err
}

// DryRuns returns how many dry runs of writes in the namespace were accepted.
func (l Log) DryRuns(namespace string) (count int, err error) {
	err = l.accepted(namespace, func(e entry) {
		if e.dryRun() {
			count++
		}
	})
	return count, err
}

// accepted calls handle with each accepted write in the namespace, a dry run or not.
func (l Log) accepted(namespace string, handle func(entry)) error {
	file, err := os.Open(l.path)
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(l.from, io.SeekStart); err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	lines := Lines(file)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(namespace)) {
			continue // Decoding costs the most.
		}
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		if e.accepted() && e.Object.Namespace == namespace {
			handle(e)
		}
	}
	return lines.Err()
}

// Lines returns the whole lines of a log. One that is just being written is not there yet.
func Lines(log io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	lines.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		advance, line, err := bufio.ScanLines(data, false)
		if atEOF && advance == 0 {
			advance = len(data)
		}
		return advance, line, err
	})
	return lines
}

func (e entry) accepted() bool {
	writes := []string{"create", "update", "patch", "delete", "deletecollection"}
	return slices.Contains(writes, e.Verb) && e.Status.Code >= 200 && e.Status.Code < 300
}

func (e entry) dryRun() bool { return strings.Contains(e.URI, "dryRun=") }

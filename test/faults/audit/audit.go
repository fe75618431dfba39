// Package audit reads the API server's audit log.
package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Write is a write that the API server has accepted.
type Write struct{ Verb, Resource, Subresource, Name string }

// Log is a log from a certain place on.
type Log struct {
	Path string
	From int64
}

// Open remembers where the log ends.
func Open(path string) (Log, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Log{}, fmt.Errorf("open the audit log: %w", err)
	}
	return Log{path, info.Size()}, nil
}

// Events returns what stands in lines with the text. A line that is just being written is
// not there yet.
func (l Log) Events(text string) (found []auditv1.Event, err error) {
	file, err := os.Open(l.Path)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.NewSectionReader(file, l.From, math.MaxInt64-l.From))
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	for line := range bytes.Lines(content) {
		if !bytes.Contains(line, []byte(text)) || !bytes.HasSuffix(line, []byte("\n")) {
			continue // Decoding costs the most.
		}
		var e auditv1.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		found = append(found, e)
	}
	return found, nil
}

// Writes returns the accepted writes in the namespace by clients whose user agent
// begins so, in the order in which they were answered. Dry runs are none.
func (l Log) Writes(namespace, agent string) (found []Write, err error) {
	all, err := l.accepted(namespace, false)
	for _, e := range all {
		if strings.HasPrefix(e.UserAgent, agent) {
			found = append(found, Write{e.Verb, e.ObjectRef.Resource, e.ObjectRef.Subresource, e.ObjectRef.Name})
		}
	}
	return found, err
}

// DryRuns returns how many dry runs of writes in the namespace were accepted.
func (l Log) DryRuns(namespace string) (int, error) {
	all, err := l.accepted(namespace, true)
	return len(all), err
}

// accepted returns the accepted writes in the namespace, or their dry runs.
func (l Log) accepted(namespace string, dry bool) ([]auditv1.Event, error) {
	all, err := l.Events(namespace)
	writes := []string{"create", "update", "patch", "delete", "deletecollection"}
	return slices.DeleteFunc(all, func(e auditv1.Event) bool {
		ok := slices.Contains(writes, e.Verb) && e.ResponseStatus != nil && e.ResponseStatus.Code >= 200 && e.ResponseStatus.Code < 300
		return !ok || e.ObjectRef == nil || e.ObjectRef.Namespace != namespace || strings.Contains(e.RequestURI, "dryRun=") != dry
	}), err
}

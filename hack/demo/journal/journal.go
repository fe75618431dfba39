// Package journal reads the manager's console log while it is being written, and
// makes of it what a guided tour shows: a short line for each step of a run, and
// the blocks of failed tasks as they stand. It also remembers what it has seen,
// so that the tour can check that the log told the story.
//
// It does not judge runs, and shows nothing of other custom resources.
package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Journal follows one log file for one custom resource.
type Journal struct {
	file   *os.File
	reader *bufio.Reader
	half   string // A line that is still being written.
	object string // The resource, "namespace/name".

	generations map[string]int64 // Of each run that started, by its id.
	ended       map[int64]int    // How many runs of a generation ended.
	tasks       []string
	blocks      []string
	opening     []string // The rule above a block, until its first line comes.
	inside      bool     // A block of the object is open.
}

// rule is how the lines above and below a block begin.
const rule = "-----"

// Open follows the file from its beginning.
func Open(path, object string) (*Journal, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("follow the manager's log: %w", err)
	}
	return &Journal{
		file:        file,
		reader:      bufio.NewReader(file),
		object:      object,
		generations: map[string]int64{},
		ended:       map[int64]int{},
	}, nil
}

// Close ends the following.
func (j *Journal) Close() error { return j.file.Close() }

// Ended is how many runs for a generation the log has reported the end of.
func (j *Journal) Ended(generation int64) int { return j.ended[generation] }

// RanTaskOf says whether a task of the role has been reported.
func (j *Journal) RanTaskOf(role string) bool {
	for _, task := range j.tasks {
		if strings.HasPrefix(task, role+" : ") {
			return true
		}
	}
	return false
}

// BlockWith says whether the output of a failed task with this text was shown.
func (j *Journal) BlockWith(text string) bool {
	for _, line := range j.blocks {
		if strings.Contains(line, text) {
			return true
		}
	}
	return false
}

// Next reads what was written since the last call and returns the lines to show.
func (j *Journal) Next() ([]string, error) {
	var show []string
	for {
		part, err := j.reader.ReadString('\n')
		j.half += part
		if errors.Is(err, io.EOF) {
			return show, nil
		}
		if err != nil {
			return show, fmt.Errorf("read the manager's log: %w", err)
		}
		line := strings.TrimSuffix(j.half, "\n")
		j.half = ""
		show = append(show, j.lines(line)...)
	}
}

// rule keeps the rule above a block until it is known whose block it is, and
// shows the one below ours.
func (j *Journal) rule(line string) []string {
	if j.inside {
		j.inside = false
		return []string{line}
	}
	j.opening = []string{line}
	return nil
}

// record is what the tour knows of a line's key/value pairs.
type record struct {
	CR         string  `json:"cr"`
	Run        string  `json:"run"`
	Generation int64   `json:"generation"`
	Reason     string  `json:"reason"`
	Task       string  `json:"task"`
	Outcome    string  `json:"outcome"`
	Seconds    float64 `json:"seconds"`
	OK         int     `json:"ok"`
	Changed    int     `json:"changed"`
	Failures   int     `json:"failures"`
}

// lines returns what to show of one line of the log.
func (j *Journal) lines(line string) []string {
	if strings.HasPrefix(line, rule) {
		return j.rule(line)
	}
	if strings.HasPrefix(line, j.object+" | ") {
		j.blocks = append(j.blocks, line)
		opening := j.opening
		j.opening, j.inside = nil, true
		return append(opening, line)
	}
	j.opening = nil
	fields := strings.Split(line, "\t")
	var r record
	if len(fields) < 3 || json.Unmarshal([]byte(fields[len(fields)-1]), &r) != nil || r.CR != j.object || r.Run == "" {
		return nil
	}
	return []string{clock(fields[0]) + "  " + j.record(r)}
}

// record remembers the record and words it.
func (j *Journal) record(r record) string {
	switch {
	case r.Task != "":
		j.tasks = append(j.tasks, r.Task)
		return fmt.Sprintf("%-8s %s (%.1f s)", r.Outcome, r.Task, r.Seconds)
	case r.Outcome != "":
		j.ended[j.generations[r.Run]]++
		return fmt.Sprintf("run ended: %s after %.1f s; %d ok, %d changed, %d failed", r.Outcome, r.Seconds, r.OK, r.Changed, r.Failures)
	}
	j.generations[r.Run] = r.Generation
	return fmt.Sprintf("run started for generation %d (%s)", r.Generation, r.Reason)
}

// clock takes the time of day from a timestamp.
func clock(timestamp string) string {
	_, clock, found := strings.Cut(timestamp, "T")
	if !found || len(clock) < len("15:04:05") {
		return timestamp
	}
	return clock[:len("15:04:05")]
}

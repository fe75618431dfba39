package jobevent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// maxLineBytes is the maximum length of a line. ensign_run.py writes shorter lines.
const maxLineBytes = 512 << 10

// Handler receives the events and texts that Decode reads, in order and on Decode's goroutine. Both
// functions may be nil.
type Handler struct {
	// Event receives the run's job events.
	Event func(Event)
	// Output receives text that belongs to no job event and to no task, line by line and without
	// line ends. It is the text that a process printed without Ansible, Ansible's text before the
	// first task (warnings and errors), and the error that ended the run. The text is untrusted and
	// may hold control characters.
	Output func(line string)
}

// Decode reads the output of ensign_run.py (internal/ansible/runner/program) until the end of r:
// JSON objects, one per line. It skips lines that are not JSON or are longer than maxLineBytes. It
// returns the error of r, other than io.EOF.
//
// Text that Ansible displays outside of job events does not respect no_log: commands
// with their environment and errors of conditions (verbose), warnings of modules,
// failures of tasks (error). So once a task has started, Decode passes only two things
// to Output: the error that ended the run, which no event follows, and text that was
// printed without Ansible. Both pass through SafeOutput. The error comes last.
func Decode(r io.Reader, h Handler) error {
	d := decoder{Handler: h}
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(lines)
		d.decodeLine(line)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading job events: %w", err)
		}
	}
	if d.lastError != "" {
		d.outputLines(safeError(d.lastError))
	}
	return nil
}

// readLine returns the next line, or nil if it is longer than maxLineBytes. The line is
// valid until the next call.
func readLine(r *bufio.Reader) (line []byte, err error) {
	part, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return part, err
	}
	line = bytes.Clone(part)
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = r.ReadSlice('\n')
		if line != nil && len(line)+len(part) <= maxLineBytes {
			line = append(line, part...)
		} else {
			line = nil
		}
	}
	return line, err
}

// decoder is the state of Decode between two lines.
type decoder struct {
	Handler
	taskStarted bool
	// lastError is the error that ended the run, unless an event follows; "" if there
	// is none.
	lastError string
}

func (d *decoder) decodeLine(line []byte) {
	var raw rawEvent
	decode := json.NewDecoder(bytes.NewReader(line))
	decode.UseNumber()
	if decode.Decode(&raw) != nil {
		return
	}
	if raw.Kind == "" {
		d.handleText(raw.Stdout)
		return
	}
	d.handleEvent(raw.event())
}

// handleText handles text that does not come with an event.
func (d *decoder) handleText(text string) {
	if !d.taskStarted {
		d.outputLines(text)
	} else if text = SafeOutput(text); text != "" {
		d.outputLines(text)
	}
}

// handleEvent handles a job event, or text that Ansible displayed by itself.
func (d *decoder) handleEvent(e Event) {
	d.taskStarted = d.taskStarted || e.Task != ""
	d.lastError = ""
	switch {
	case !isDisplayed(e.Kind):
		if d.Event != nil {
			d.Event(e)
		}
	case e.Kind == "verbose" || e.Kind == "debug":
	case !d.taskStarted:
		d.outputLines(e.Stdout)
	case e.Kind == "error" && !strings.HasPrefix(e.Stdout, "[ERROR]: Task failed"):
		d.lastError = e.Stdout
	}
}

// isDisplayed reports whether ansible-runner gives this kind to text that Ansible
// displays outside of its job events.
func isDisplayed(k Kind) bool {
	switch k {
	case "verbose", "debug", "deprecated", "warning", "system_warning", "error":
		return true
	}
	return false
}

func (h Handler) outputLines(text string) {
	if h.Output == nil {
		return
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		h.Output(strings.TrimRight(line, "\r"))
	}
}

// rawEvent is a line of ensign_run.py. A line without a kind is text that belongs to no
// event.
type rawEvent struct {
	Kind    Kind   `json:"event"`
	UUID    string `json:"uuid"`
	Created string `json:"created"` // ISO 8601
	Stdout  string `json:"stdout"`
	Data    struct {
		HostStats

		Play         string         `json:"play"`
		Task         string         `json:"task"`
		Role         string         `json:"role"`
		Host         string         `json:"host"`
		Place        string         `json:"task_path"`
		Action       string         `json:"task_action"`
		Resolved     *string        `json:"resolved_action"`
		Seconds      float64        `json:"duration"`
		IgnoreErrors bool           `json:"ignore_errors"`
		Result       map[string]any `json:"res"`
	} `json:"event_data"`
}

func (r *rawEvent) event() Event {
	d := &r.Data
	e := Event{
		UUID: r.UUID, Kind: r.Kind, Stdout: r.Stdout,
		Play: d.Play, Task: d.Task, Role: d.Role, Host: d.Host, TaskPath: d.Place, Action: d.Action,
		Duration: durationOf(d.Seconds), IgnoreErrors: d.IgnoreErrors, Result: d.Result,
	}
	created, _ := time.Parse(time.RFC3339Nano, r.Created)
	e.Created = created.UTC()
	if r.Kind == Stats {
		e.HostStats = &d.HostStats
	}
	if d.Resolved != nil {
		if e.ResolvedAction = *d.Resolved; e.ResolvedAction == "" {
			hideAction(&e)
		}
	}
	return e
}

// durationOf returns the seconds as a duration, or 0 if they are negative, NaN or more
// than ten years.
func durationOf(s float64) time.Duration {
	const most = 10 * 366 * 24 * 3600
	if !(s > 0 && s < most) {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

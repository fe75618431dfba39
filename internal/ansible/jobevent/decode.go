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

// maxLine bounds a line in bytes. The program of runs bounds what it writes below that.
const maxLine = 512 << 10

// Handler receives what Decode finds, on Decode's goroutine and in order. Both
// functions may be nil.
type Handler struct {
	// Event receives the run's job events.
	Event func(Event)
	// Output receives text that is no job event and tells nothing of a task, line
	// by line, without its line end: whatever was printed past Ansible, the warnings
	// and errors that Ansible displays before the first task, and the error that ended
	// the run. It is untrusted and may hold control characters.
	Output func(line string)
}

// Decode reads what the program of runs (internal/ansible/runner/program) reports, until its
// end: JSON objects, one a line. A line that is none, or is longer than maxLine, is
// passed over. The error is the reader's, other than io.EOF.
//
// What Ansible displays beside its job events does not respect no_log: commands
// with their environment and errors of conditions (verbose), warnings of modules,
// failures of tasks (error). So once a task has started nothing of it is Output,
// but for an error that no event of the run follows. Such an error has ended the
// run; it comes last. Of it, and of what was printed past Ansible by then, only
// words are Output that hold no value.
func Decode(r io.Reader, h Handler) error {
	d := decoder{Handler: h}
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(lines)
		d.line(line)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading job events: %w", err)
		}
	}
	if d.last != "" {
		d.lines(ownError(d.last))
	}
	return nil
}

// readLine returns the next line, nil where it is longer than maxLine. The line is
// valid until the next call.
func readLine(r *bufio.Reader) (line []byte, err error) {
	part, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return part, err
	}
	line = bytes.Clone(part)
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = r.ReadSlice('\n')
		if line != nil && len(line)+len(part) <= maxLine {
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
	// tasks is true once a task has started.
	tasks bool
	// last is the error that may have ended the run, "" if another event followed.
	last string
}

// line takes a line.
func (d *decoder) line(line []byte) {
	var r report
	decode := json.NewDecoder(bytes.NewReader(line))
	decode.UseNumber()
	if decode.Decode(&r) != nil {
		return
	}
	if r.Kind == "" {
		d.printed(r.Stdout)
		return
	}
	d.happened(r.asEvent())
}

// printed takes text that was displayed past all events.
func (d *decoder) printed(text string) {
	if !d.tasks {
		d.lines(text)
	} else if text = own(text); text != "" {
		d.lines(text)
	}
}

// happened takes an event or a displayed text.
func (d *decoder) happened(e Event) {
	d.tasks = d.tasks || e.Task != ""
	d.last = ""
	switch {
	case !displayed(e.Kind):
		if d.Event != nil {
			d.Event(e)
		}
	case e.Kind == "verbose" || e.Kind == "debug":
	case !d.tasks:
		d.lines(e.Stdout)
	case e.Kind == "error" && !strings.HasPrefix(e.Stdout, "[ERROR]: Task failed"):
		d.last = e.Stdout
	}
}

// displayed reports whether the kind is of what Ansible says outside of its job events.
func displayed(k Kind) bool {
	switch k {
	case "verbose", "debug", "deprecated", "warning", "system_warning", "error":
		return true
	}
	return false
}

func (h Handler) lines(text string) {
	if h.Output == nil {
		return
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		h.Output(strings.TrimRight(line, "\r"))
	}
}

// report is a line of the program of runs. Without a kind it is a text that was displayed.
type report struct {
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

func (r *report) asEvent() Event {
	d := &r.Data
	e := Event{
		UUID: r.UUID, Kind: r.Kind, Stdout: r.Stdout,
		Play: d.Play, Task: d.Task, Role: d.Role, Host: d.Host, Place: d.Place, Action: d.Action,
		Duration: seconds(d.Seconds), IgnoreErrors: d.IgnoreErrors, Result: d.Result,
	}
	created, _ := time.Parse(time.RFC3339Nano, r.Created)
	e.Created = created.UTC()
	if r.Kind == Stats {
		e.HostStats = &d.HostStats
	}
	if d.Resolved != nil {
		if e.Resolved = *d.Resolved; e.Resolved == "" {
			hideAction(&e)
		}
	}
	return e
}

// seconds is a duration, 0 for one of no sense.
func seconds(s float64) time.Duration {
	const most = 10 * 366 * 24 * 3600
	if !(s > 0 && s < most) {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

package jobevent

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ensign-operator/ensign/internal/jobevent/jsonline"
)

const (
	// maxCount bounds the count of a host, so that no sum of them overflows.
	maxCount = 1 << 30
	// maxSeconds bounds a task's duration: ten years.
	maxSeconds = 10 * 366 * 24 * 3600
	// lostEvent stands for what lost is true of.
	lostEvent = "ansible-runner lost a job event: it could not read the event's file in the run directory"
	// tooLarge stands for a result that ansible-runner has left out.
	tooLarge = "the task's result was too large to be shown: it has more characters than MAX_EVENT_RES, which is 8000000 where the operator's environment has no other"
)

// Handler receives what Decode finds, on Decode's goroutine and in order. Both
// functions may be nil.
type Handler struct {
	// Event receives this run's job events.
	Event func(Event)
	// Output receives text that is no job event and tells nothing of a task, line
	// by line, without its line end and cut to 64 KiB: whatever was printed past
	// Ansible, the warnings and errors that Ansible displays before the first
	// task, and the error that ended the run. It is untrusted and may hold control
	// characters.
	Output func(line string)
}

// Decode reads the standard output of "ansible-runner run --json" until its
// end. The run must have been started with JOB_ID=<nonce> in its environment:
// only a line that is one JSON object whose single top-level job_id is the
// integer nonce is a job event. Nothing that a line holds is an error. The error
// is the reader's, other than io.EOF.
//
// What Ansible displays beside its job events does not respect no_log: commands
// with their environment and errors of conditions (verbose), warnings of modules,
// failures of tasks (error). So once a task has started nothing of it is Output,
// but for an error that no event of the run follows. Such an error has ended the
// run; it comes last. Of it, and of what was printed past Ansible by then, only
// words are Output that hold no value.
func Decode(r io.Reader, nonce int64, h Handler) error {
	d := decoder{Handler: h, jobID: strconv.FormatInt(nonce, 10)}
	lines := jsonline.NewReader(r)
	for lines.Next() {
		d.line(lines)
	}
	if d.last != "" {
		d.lines(ownError(d.last))
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading job events: %w", err)
	}
	return nil
}

// decoder is the state of Decode between two lines.
type decoder struct {
	Handler
	jobID string
	// tasks is true once a task has started.
	tasks bool
	// last is the error that may have ended the run, "" if another event followed.
	last string
}

// line takes a line.
func (d *decoder) line(lines *jsonline.Reader) {
	l := readLine(lines)
	switch {
	case lines.Done() && l.lost():
		d.output(lostEvent)
	case !lines.Done() || l.repeats() || l.event.Kind == "":
		d.printed(raw(lines.Beginning()))
	case l.jobID == d.jobID:
		d.genuine(l.event)
	case l.ids == 0 && displayed(l.event.Kind):
		d.printed(l.event.Stdout)
	default:
		d.printed(raw(lines.Beginning()))
	}
}

// printed takes text that is no event of this run.
func (d *decoder) printed(text string) {
	if !d.tasks {
		d.lines(text)
	} else if text = own(text); text != "" {
		d.lines(text)
	}
}

// genuine takes an event or a displayed text of this run.
func (d *decoder) genuine(e Event) {
	d.tasks = d.tasks || e.Task != ""
	d.last = ""
	switch {
	case !displayed(e.Kind):
		d.event(e)
	case e.Kind == "verbose" || e.Kind == "debug":
	case !d.tasks:
		d.lines(e.Stdout)
	case e.Kind == "error" && !strings.HasPrefix(e.Stdout, "[ERROR]: Task failed"):
		d.last = e.Stdout
	}
}

// displayed is true for what Ansible says outside of its job events.
// ansible-runner makes such an event, without a job_id, of every raw line too.
func displayed(k Kind) bool {
	switch k {
	case "verbose", "debug", "deprecated", "warning", "system_warning", "error":
		return true
	}
	return false
}

func (h Handler) event(e Event) {
	if h.Event != nil {
		h.Event(e)
	}
}

func (h Handler) output(line string) {
	if h.Output != nil {
		h.Output(line)
	}
}

func (h Handler) lines(text string) {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		h.output(strings.TrimRight(line, "\r"))
	}
}

func raw(line []byte) string {
	line = bytes.TrimSuffix(line, []byte("\r"))
	return clip(strings.ToValidUTF8(string(line), string(utf8.RuneError)), jsonline.MaxText)
}

// line is what a line says, whoever wrote it.
type line struct {
	event Event
	// jobID is the top-level job_id as it is written; "" where it is no number.
	jobID string
	// ids, kinds and datas count how often the line has such a member.
	ids, kinds, datas int
	numbered          bool
}

// lost is true of a job event whose data ansible-runner could not read. What
// Ansible displayed for it is all that it has then, and does not respect no_log.
func (l *line) lost() bool { return l.kinds == 0 && l.ids == 0 && l.numbered && l.event.UUID != "" }

// repeats is true when a line says something twice. Python's dictionaries cannot
// write such a line, and nobody can say which of the values to believe.
func (l *line) repeats() bool { return l.ids > 1 || l.kinds > 1 || l.datas > 1 }

func readLine(r *jsonline.Reader) line {
	var l line
	e := &l.event
	r.Object(func(key []byte) {
		switch string(key) {
		case "job_id":
			l.ids++
			l.jobID = r.Literal()
		case "event":
			l.kinds++
			e.Kind = Kind(r.Text(jsonline.MaxName))
		case "event_data":
			l.datas++
			readData(r, e)
		case "counter":
			l.numbered = r.Literal() != ""
		case "uuid":
			e.UUID = r.Text(jsonline.MaxName)
		case "created":
			e.Created, _ = time.Parse(time.RFC3339Nano, r.Text(jsonline.MaxName))
		case "stdout":
			e.Stdout = r.Text(jsonline.MaxText)
		default:
			r.Skip()
		}
	})
	e.Created = e.Created.UTC()
	if e.Kind != Stats {
		e.HostStats = nil
	} else if e.HostStats == nil {
		e.HostStats = &HostStats{}
	}
	return l
}

func readData(r *jsonline.Reader, e *Event) {
	resolvable := false
	r.Object(func(key []byte) {
		switch string(key) {
		case "play":
			e.Play = r.Text(jsonline.MaxName)
		case "task":
			e.Task = r.Text(jsonline.MaxName)
		case "role":
			e.Role = r.Text(jsonline.MaxName)
		case "host":
			e.Host = r.Text(jsonline.MaxName)
		case "task_path":
			e.Place = r.Text(jsonline.MaxName)
		case "task_action":
			e.Action = r.Text(jsonline.MaxName)
		case "resolved_action":
			e.Resolved, resolvable = r.Text(jsonline.MaxName), true
		case "duration":
			e.Duration = seconds(r.Literal())
		case "ignore_errors":
			e.IgnoreErrors = r.Literal() == "true"
		case "res":
			e.Result = readResult(r)
		default:
			readStats(r, e, key)
		}
	})
	if resolvable && e.Resolved == "" {
		hideAction(e)
	}
}

// readResult reads a task's result, nil where it is no object. No module and no
// plugin returns nothing at all: an empty one has been left out.
func readResult(r *jsonline.Reader) map[string]any {
	result, _ := r.Value().(map[string]any)
	if result != nil && len(result) == 0 {
		result["msg"] = tooLarge
	}
	return result
}

func seconds(literal string) time.Duration {
	s, err := strconv.ParseFloat(literal, 64)
	if err != nil || !(s > 0 && s < maxSeconds) {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

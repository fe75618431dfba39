package eventlog

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/observe/terminal"
	"github.com/ensign-operator/ensign/internal/sanitize"
)

// TaskHeading stands above task output, as the ansible-operator base image has it.
const TaskHeading = "Ansible Task StdOut"

// BlockFooter is the line below task output.
const BlockFooter = "-------------------------------------------------------------------------------"

// Header returns the line above task output or a run's message, with the heading where the
// ansible-operator base image has its own: a little left of the middle.
func Header(heading string) string {
	const most = len(BlockFooter) - 8
	if heading = terminal.OneLine(heading); heading == "" || utf8.RuneCountInString(heading) > most {
		return BlockFooter
	}
	dashes := len(BlockFooter) - utf8.RuneCountInString(heading) - 2
	left := (dashes - 3) / 2
	return BlockFooter[:left] + " " + heading + " " + BlockFooter[:dashes-left]
}

const (
	// maxLineBytes is the longest result that is shown on one line.
	maxLineBytes = 160
	// maxTextBytes bounds the text of a task, and maxBlockBytes the output as it is written: escapes for
	// invisible characters and the CR before each line can make a text several times as long.
	maxTextBytes, maxBlockBytes = 256 << 10, 512 << 10
)

// taskText returns the text of a task's block, in the format of Ansible's own output.
func taskText(e jobevent.Event) string {
	var b strings.Builder
	b.WriteString("TASK [" + terminal.OneLine(e.TaskName()) + "] ****\n")
	b.WriteString(statusPrefix(e) + terminal.OneLine(e.Host) + "]")
	b.WriteString(failureSuffix(e))
	if e.Result != nil {
		b.WriteString(" => " + sanitize.Text(render(cleanResult(e.Result))))
	}
	if e.Kind == jobevent.HostFailed && e.IgnoreErrors {
		b.WriteString("\n...ignoring")
	}
	return truncate(b.String())
}

// truncate returns at most maxTextBytes of the text, and CutMark after them if it is longer.
func truncate(text string) string {
	if len(text) <= maxTextBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxTextBytes], "") + jobevent.CutMark
}

// cleanResult returns the sanitized result without a placeholder for a missing traceback.
func cleanResult(result map[string]any) map[string]any {
	result = jobevent.Sanitize(result)
	if result["exception"] == "(traceback unavailable)" {
		delete(result, "exception")
	}
	return result
}

func statusPrefix(e jobevent.Event) string {
	switch outcomeOf(e) {
	case failed, ignored, unreachable:
		return "fatal: ["
	case skipped:
		return "skipping: ["
	case changed:
		return "changed: ["
	}
	return "ok: ["
}

func failureSuffix(e jobevent.Event) string {
	switch e.Kind {
	case jobevent.HostFailed:
		return ": FAILED!"
	case jobevent.HostUnreachable:
		return ": UNREACHABLE!"
	}
	return ""
}

// render returns a result as JSON, on one line if it is short enough.
func render(result map[string]any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	if err := encoder.Encode(result); err != nil {
		return "(a result that cannot be shown)"
	}
	text := strings.TrimSuffix(out.String(), "\n")
	if line := joinLines(text); len(line) <= maxLineBytes {
		return line
	}
	return text
}

// joinLines returns indented JSON on one line. A line feed in JSON is never part of a string.
func joinLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.TrimLeft(line, " ")
		if strings.HasSuffix(line, ",") {
			line += " "
		}
		lines[i] = line
	}
	return strings.Join(lines, "")
}

// block returns the text with the CR before each line, between a header and a footer.
func block(heading, object, text string) []byte {
	var b bytes.Buffer
	b.WriteString(Header(heading) + "\n")
	for line := range strings.Lines(text) {
		if b.Len()+len(object)+len(line) > maxBlockBytes {
			b.WriteString(object + " | " + jobevent.CutMark + "\n")
			break
		}
		b.WriteString(object + " | " + strings.TrimRight(line, "\n") + "\n")
	}
	b.WriteString(BlockFooter + "\n")
	return b.Bytes()
}

package eventlog

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
)

const (
	blockTop    = "--------------------------- Ansible Task StdOut -------------------------------\n"
	blockBottom = "-------------------------------------------------------------------------------\n"

	// maxLine is how long a result may be to stand on one line.
	maxLine = 160
	// maxText and maxBlock bound the text of a block and all of it: characters that
	// are not shown, and the CR before each line, make a result several times as long.
	maxText, maxBlock = 256 << 10, 512 << 10
)

// taskText is what a block says of a task on a host, in Ansible's own words.
func taskText(e jobevent.Event) string {
	var b strings.Builder
	b.WriteString("TASK [" + oneLine(e.TaskName()) + "] ****\n")
	b.WriteString(opening(e) + oneLine(e.Host) + "]")
	b.WriteString(verdict(e))
	if e.Result != nil {
		b.WriteString(" => " + jobevent.Visible(render(shown(e.Result))))
	}
	if e.Kind == jobevent.HostFailed && e.IgnoreErrors {
		b.WriteString("\n...ignoring")
	}
	return cut(b.String())
}

// cut returns at most maxText bytes and the mark of what is missing.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + jobevent.CutMark
}

// shown is the result without what says nothing.
func shown(result map[string]any) map[string]any {
	result = jobevent.Sanitize(result)
	if result["exception"] == "(traceback unavailable)" {
		delete(result, "exception")
	}
	return result
}

func opening(e jobevent.Event) string {
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

func verdict(e jobevent.Event) string {
	switch e.Kind {
	case jobevent.HostFailed:
		return ": FAILED!"
	case jobevent.HostUnreachable:
		return ": UNREACHABLE!"
	}
	return ""
}

// render writes a result as JSON, on one line where that is short enough.
func render(result map[string]any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	if err := encoder.Encode(result); err != nil {
		return "(a result that cannot be shown)"
	}
	text := strings.TrimSuffix(out.String(), "\n")
	if line := unfold(text); len(line) <= maxLine {
		return line
	}
	return text
}

// unfold puts indented JSON on one line. A line feed in it is never part of a
// string.
func unfold(text string) string {
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

// block frames text and puts the CR in front of each of its lines.
func block(object, text string) []byte {
	var b bytes.Buffer
	b.WriteString(blockTop)
	for line := range strings.Lines(text) {
		if b.Len()+len(object)+len(line) > maxBlock {
			b.WriteString(object + " | " + jobevent.CutMark + "\n")
			break
		}
		b.WriteString(object + " | " + strings.TrimRight(line, "\n") + "\n")
	}
	b.WriteString(blockBottom)
	return b.Bytes()
}

// oneLine makes a name fit to stand within a line.
func oneLine(text string) string {
	return strings.ReplaceAll(jobevent.Visible(text), "\n", `\n`)
}

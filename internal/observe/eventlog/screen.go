package eventlog

import (
	"fmt"
	"io"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/observe/terminal"
	"github.com/ensign-operator/ensign/internal/sanitize"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Screen shows runs to people at a terminal: a line for each task on each host, the result of
// a failed one below it, a line for the start and the end of a run. Everything from a
// run is shown sanitized and without control characters.
type Screen struct {
	content.ObserverDefaults

	// Out gets each line, or block, in one Write.
	Out     io.Writer
	Palette terminal.Palette
	// Shared is set where several runs share the terminal: each line then begins with the time
	// and the CR, each line of task output with the CR.
	Shared bool
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Write writes text past the screen's own lines, so that a Screen can be the stream of texts
// outside of runs.
func (s Screen) Write(text []byte) (int, error) { return s.Out.Write(text) }

// clock is the format of times.
const clock = "15:04:05"

// Say shows the text, which may be anything, in a colour.
func (s Screen) Say(run content.Run, c terminal.Color, text string) {
	first, rest := "", ""
	if s.Shared {
		object := terminal.OneLine(run.Object) + "  "
		first, rest = s.Time()+" "+object, strings.Repeat(" ", len(clock)+1)+object
	}
	var b strings.Builder
	prefix := first
	for line := range strings.Lines(sanitize.Text(strings.TrimRight(text, "\n")) + "\n") {
		b.WriteString(s.Palette.Paint(terminal.Faint, prefix) + s.Palette.Paint(c, strings.TrimSuffix(line, "\n")) + "\n")
		prefix = rest
	}
	_, _ = io.WriteString(s.Out, b.String()) // Like the log's lines, it has nowhere to report an error.
}

// Time returns the time of day as lines have it.
func (s Screen) Time() string {
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	return now().Format(clock)
}

// RunStarted shows the start of a run.
func (s Screen) RunStarted(run content.Run) {
	what := "run"
	if run.Finalizer {
		what = "finalizer run"
	}
	text := fmt.Sprintf("%s for %s (%s)", what, run.Object, run.Watch)
	if s.Shared {
		text = fmt.Sprintf("%s of %s, generation %d: %s", what, run.Watch, run.Generation, run.Trigger)
	}
	s.Say(run, terminal.Faint, text)
}

// Task shows the line of a task on a host, or of an item of its loop, and the text below it, if
// any. It shows nothing for other events.
func (s Screen) Task(run content.Run, e jobevent.Event, below string) {
	out := outcomeOf(e)
	if out == noOutcome {
		return
	}
	text := fmt.Sprintf("  %-11s %6.2f s  %s", word(out), e.Duration.Seconds(), e.TaskName())
	if out.isItem() {
		if label := itemLabel(e); label != "" {
			text += " (" + label + ")"
		}
	}
	if e.Host != "localhost" {
		text += " on " + e.Host
	}
	text = terminal.OneLine(text)
	if below != "" {
		text += "\n" + terminal.Indent("      ", below)
	}
	s.Say(run, colorOf(out), text)
}

func word(out outcome) string {
	if out == failed || out == unreachable {
		return strings.ToUpper(string(out))
	}
	return string(out)
}

func colorOf(out outcome) terminal.Color {
	switch out {
	case ok, itemOK:
		return terminal.Green
	case changed:
		return terminal.Yellow
	case skipped, itemSkipped:
		return terminal.Cyan
	case retrying:
		return terminal.Faint
	}
	return terminal.Red
}

// Below returns where a task stands and its result, as YAML with the message first, for Task.
func Below(e jobevent.Event) string {
	result := cleanResult(e.Result)
	var text strings.Builder
	if e.TaskPath != "" {
		text.WriteString("at " + e.TaskPath + "\n")
	}
	if message, isText := result["msg"].(string); isText {
		delete(result, "msg")
		text.WriteString(message + "\n")
	}
	for _, name := range []string{"stdout", "stderr"} {
		if _, both := result[name]; both {
			delete(result, name+"_lines")
		}
	}
	if rest, err := yaml.Marshal(result); err == nil && len(result) > 0 {
		text.Write(rest)
	}
	return truncate(text.String())
}

// RunEnded shows the end of a run.
func (s Screen) RunEnded(run content.Run, result content.Result, elapsed time.Duration) {
	outcome, counts := result.Outcome, fmt.Sprintf("%.2f s", elapsed.Seconds())
	if start := result.Account.Start; start != "" {
		counts += ", " + start
	}
	if summary := result.Account.Summary; summary != "" {
		counts += ": " + summary
	}
	if result.RequeueAfter > 0 {
		counts += fmt.Sprintf("; it asks to run again after %s", result.RequeueAfter)
	}
	if outcome.Verdict == content.Succeeded {
		s.Say(run, terminal.Green, "succeeded in "+counts)
		return
	}
	s.Say(run, terminal.Red, fmt.Sprintf("%s (%s) in %s\n%s", strings.ToLower(string(outcome.Verdict)), outcome.Reason, counts, outcome.Message))
}

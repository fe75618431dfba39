package once

import (
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/content"
)

// screen shows one run: a line for each task on each host, the result of each that failed,
// and a line for the end. It is a engine.Observer. What comes from the run is shown
// sanitized and without control characters.
type screen struct {
	options Options
	ran     bool
}

func newScreen(o Options) *screen { return &screen{options: o} }

const (
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	faint  = "2"
)

// say writes the text, every line of which is safe to show, in a colour.
func (s *screen) say(color, text string) {
	text = content.Visible(strings.TrimRight(text, "\n"))
	if s.options.Color {
		text = "\x1b[" + color + "m" + strings.ReplaceAll(text, "\n", "\x1b[0m\n\x1b["+color+"m") + "\x1b[0m"
	}
	fmt.Fprintln(s.options.Out, text)
}

// RunStarted implements engine.Observer.
func (s *screen) RunStarted(run content.Run) {
	s.ran = true
	what := "run"
	if run.Finalizer {
		what = "finalizer run"
	}
	s.say(faint, fmt.Sprintf("%s for %s (%s)", what, run.Object, run.Watch))
}

// JobEvent implements engine.Observer.
func (s *screen) JobEvent(_ content.Run, e jobevent.Event) {
	switch e.Kind {
	case jobevent.HostOK:
		outcome, color := "ok", green
		if changed, _ := e.Result["changed"].(bool); changed {
			outcome, color = "changed", yellow
		}
		s.task(color, outcome, e)
		s.diff(e)
	case jobevent.HostSkipped:
		s.task(cyan, "skipped", e)
	case jobevent.HostRetry:
		s.task(faint, "retry", e)
	case jobevent.ItemFailed:
		s.task(red, "item", e)
	case jobevent.HostFailed, jobevent.HostUnreachable:
		outcome := "FAILED"
		switch {
		case e.Kind == jobevent.HostUnreachable:
			outcome = "UNREACHABLE"
		case e.IgnoreErrors:
			outcome = "ignored"
		}
		s.task(red, outcome, e)
		s.block(e)
	}
}

func (s *screen) task(color, outcome string, e jobevent.Event) {
	host := ""
	if e.Host != "localhost" {
		host = " on " + e.Host
	}
	s.say(color, oneLine(fmt.Sprintf("  %-11s %6.2f s  %s%s", outcome, e.Duration.Seconds(), e.TaskName(), host)))
}

// oneLine keeps the name of a task, which may hold anything, from making further lines.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", `\n`) }

// block shows where the task stands and its result, as YAML.
func (s *screen) block(e jobevent.Event) {
	result := jobevent.Sanitize(e.Result)
	text, err := yaml.Marshal(result)
	if err != nil {
		text = []byte(jobevent.FailureMessage(e))
	}
	s.say(red, indented("at "+e.TaskPath+"\n"+string(text)))
}

func (s *screen) diff(e jobevent.Event) {
	if !s.options.Diffs {
		return
	}
	for line := range strings.Lines(diffOf(jobevent.Sanitize(e.Result))) {
		color := faint
		switch line[0] {
		case '+':
			color = green
		case '-':
			color = red
		}
		s.say(color, indented(line))
	}
}

func indented(text string) string {
	return "      " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n      ")
}

// RunEnded implements engine.Observer.
func (s *screen) RunEnded(run content.Run, outcome content.Outcome, sum jobevent.Summary, elapsed time.Duration) {
	how := "cold"
	if run.Warm {
		how = "warm"
	}
	counts := fmt.Sprintf("%.2f s, %s: %d ok, %d changed, %d skipped, %d failed", elapsed.Seconds(), how, sum.OK, sum.Changed, sum.Skipped, sum.Failures+sum.Unreachable)
	if sum.RequeueAfter > 0 {
		counts += fmt.Sprintf("; it asks to run again after %s", sum.RequeueAfter)
	}
	if outcome.Verdict == content.Succeeded {
		s.say(green, "succeeded in "+counts)
		return
	}
	s.say(red, fmt.Sprintf("%s (%s) in %s\n%s", strings.ToLower(string(outcome.Verdict)), outcome.Reason, counts, outcome.Message))
}

// refused shows why nothing ran.
func (s *screen) refused(outcome content.Outcome) {
	s.say(red, fmt.Sprintf("nothing was run (%s):\n%s", outcome.Reason, outcome.Message))
}

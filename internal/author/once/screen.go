package once

import (
	"fmt"
	"strings"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/observe/eventlog"
	"github.com/ensign-operator/ensign/internal/observe/terminal"
	"github.com/ensign-operator/ensign/pkg/content"
)

// screen shows one run as the manager's log does at a terminal, with the changes of each task. It
// is an engine.Observer.
type screen struct {
	eventlog.Screen

	diffs, ran bool
}

func newScreen(o Options) *screen {
	return &screen{Screen: eventlog.Screen{Out: o.Out, Palette: o.Palette}, diffs: o.Diffs}
}

// RunStarted implements engine.Observer.
func (s *screen) RunStarted(run content.Run) {
	s.ran = true
	s.Screen.RunStarted(run)
}

// JobEvent implements engine.Observer.
func (s *screen) JobEvent(run content.Run, e jobevent.Event) {
	switch e.Kind {
	case jobevent.HostOK:
		s.Task(run, e, "")
		s.diff(run, e)
	case jobevent.HostSkipped, jobevent.HostRetry, jobevent.ItemFailed:
		s.Task(run, e, "")
	case jobevent.HostFailed, jobevent.HostUnreachable:
		s.Task(run, e, eventlog.Below(e))
	}
}

func (s *screen) diff(run content.Run, e jobevent.Event) {
	if !s.diffs {
		return
	}
	for line := range strings.Lines(diffOf(jobevent.Sanitize(e.Result))) {
		color := terminal.Faint
		switch line[0] {
		case '+':
			color = terminal.Green
		case '-':
			color = terminal.Red
		}
		s.Say(run, color, terminal.Indent("      ", line))
	}
}

// refused shows why nothing ran.
func (s *screen) refused(outcome content.Outcome) {
	s.Say(content.Run{}, terminal.Red, fmt.Sprintf("nothing was run (%s):\n%s", outcome.Reason, outcome.Message))
}

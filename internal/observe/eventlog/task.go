package eventlog

import (
	"strings"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/observe/terminal"
)

// outcome is the outcome of a task on a host, or of an item of its loop.
type outcome string

const (
	noOutcome   outcome = ""
	ok          outcome = "ok"
	changed     outcome = "changed"
	skipped     outcome = "skipped"
	failed      outcome = "failed"
	ignored     outcome = "ignored"
	unreachable outcome = "unreachable"
	itemOK      outcome = "item ok"
	itemSkipped outcome = "item skipped"
	itemFailed  outcome = "item failed"
	retrying    outcome = "retrying"
)

// outcomeOf returns the outcome that an event reports; noOutcome for an event that is not about a
// task on a host.
func outcomeOf(e jobevent.Event) outcome {
	switch e.Kind {
	case jobevent.HostOK:
		if isChanged, _ := e.Result["changed"].(bool); isChanged {
			return changed
		}
		return ok
	case jobevent.HostFailed:
		if e.IgnoreErrors {
			return ignored
		}
		return failed
	case jobevent.HostSkipped:
		return skipped
	case jobevent.HostUnreachable:
		return unreachable
	}
	return map[jobevent.Kind]outcome{
		jobevent.ItemOK:      itemOK,
		jobevent.ItemSkipped: itemSkipped,
		jobevent.ItemFailed:  itemFailed,
		jobevent.HostRetry:   retrying,
	}[e.Kind]
}

// TaskOutcome returns the outcome of a task that has ended on a host, as the log names it; "" for an
// event of anything else.
func TaskOutcome(e jobevent.Event) string {
	if out := outcomeOf(e); !out.isItem() {
		return string(out)
	}
	return ""
}

// isItem reports whether the outcome is that of an item or a retry, before the end of its task.
func (o outcome) isItem() bool { return o == retrying || strings.HasPrefix(string(o), "item ") }

// isFailure reports whether the task failed on the host, including failures that the play ignores.
func (o outcome) isFailure() bool { return o == failed || o == ignored || o == unreachable }

// minLevel returns the lowest level that shows the outcome.
func (o outcome) minLevel() Level {
	if o.isItem() {
		return Everything
	}
	return Tasks
}

// itemLabel returns the label of a loop's item. If the result is about a Secret, the label may have
// the Secret's data. So the result is passed to Sanitize as the "invocation", where Sanitize
// detects that.
func itemLabel(e jobevent.Event) string {
	sanitized := jobevent.Sanitize(map[string]any{"item": e.Result["_ansible_item_label"], "invocation": e.Result})
	if label, ok := sanitized["item"].(string); ok {
		return terminal.OneLine(label)
	}
	if label, ok := sanitized["item"].(map[string]any); ok {
		return terminal.OneLine(joinLines(render(label)))
	}
	return ""
}

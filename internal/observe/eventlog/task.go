package eventlog

import (
	"strings"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
)

// outcome is what came of a task on a host, or of an item of its loop.
type outcome string

const (
	none        outcome = ""
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

// outcomeOf is none for an event that says nothing about a task on a host.
func outcomeOf(e jobevent.Event) outcome {
	switch e.Kind {
	case jobevent.HostOK:
		if did, _ := e.Result["changed"].(bool); did {
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

// item is true for what happens within a task, before its end.
func (o outcome) item() bool { return o == retrying || strings.HasPrefix(string(o), "item ") }

// failure is true for what went wrong on a host, whether or not that counts.
func (o outcome) failure() bool { return o == failed || o == ignored || o == unreachable }

// level is the lowest that shows the outcome.
func (o outcome) level() Level {
	if o.item() {
		return Everything
	}
	return Tasks
}

// item is the loop's item as the loop labels it. Where the result tells of a
// Secret, so may the item, and the result stands where Sanitize looks for that.
func item(e jobevent.Event) string {
	shown := jobevent.Sanitize(map[string]any{"item": e.Result["_ansible_item_label"], "invocation": e.Result})
	if label, ok := shown["item"].(string); ok {
		return oneLine(label)
	}
	if label, ok := shown["item"].(map[string]any); ok {
		return oneLine(unfold(render(label)))
	}
	return ""
}

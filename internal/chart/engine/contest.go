package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ensign-operator/ensign/internal/chart/objects"
	"github.com/ensign-operator/ensign/internal/sanitize"
)

const (
	// eventContested is the reason of the Event about a field that is changed again and again.
	eventContested = "Contested"
	// contestedFrom is the number of repairs of a field from which the Event names it.
	contestedFrom = 3
	// firstPause is the pause after the second repair of a field. It doubles with each further one.
	firstPause = 10 * time.Second
	// longestPause bounds the pauses. Repairs never stop.
	longestPause = time.Hour
	// calm is how long a field must stay unchanged after its pause until it is not contested any more.
	calm = 10 * time.Minute
)

// contests have the fields of a release that were repaired. A field that another client changes again and again is
// repaired at growing intervals; all other fields are repaired at once.
type contests map[contested]contest

// contested is a field of an object; "" is the object itself, which is deleted again and again.
type contested struct{ object, field string }

// contest says how often a field was repaired, and when it may be repaired again; the zero time means at once.
type contest struct {
	repairs int
	due     time.Time
}

// repaired notes a repair, and returns the field's contest.
func (c contests) repaired(field contested, now time.Time) contest {
	last := c[field]
	if now.After(last.due.Add(calm)) {
		last = contest{}
	}
	last.repairs++
	last.due = now.Add(pauseAfter(last.repairs))
	c[field] = last
	return last
}

// pauseAfter returns the pause after a repair of a field. It is 0 after the first one: a second
// change by hand is repaired at once.
func pauseAfter(repairs int) time.Duration {
	pause := firstPause
	for range repairs - 2 {
		pause = min(2*pause, longestPause)
	}
	if repairs < 2 {
		return 0
	}
	return pause
}

// isHeld reports whether a field waits for its repair.
func (w *work) isHeld(object, field string) bool {
	return w.engine.now().Before(w.memory.contests[contested{object, field}].due)
}

// noteRepairs notes the repaired fields, and makes Events about contested ones.
func (w *work) noteRepairs(ctx context.Context, repaired []objects.Object) {
	for _, object := range repaired {
		for _, field := range fieldsOf(object) {
			now := w.engine.now()
			c := w.memory.contests.repaired(contested{object.Name, field}, now)
			if c.repairs < contestedFrom {
				continue
			}
			hint := object.Name + " " + field + ": " + object.Hint(field)
			next := c.due.Sub(now).String()
			w.log(ctx).Info("WARNING: a field of the release is changed again and again; it is repaired at growing intervals", "field", sanitize.Text(hint), "nextRepair", next)
			w.event(corev1.EventTypeWarning, eventContested, "Repair", fmt.Sprintf("%s. It is repaired at growing intervals, the next time in %s at the earliest", hint, next))
		}
	}
}

// fieldsOf returns the fields of an object that has drifted; "" is a missing one.
func fieldsOf(object objects.Object) []string {
	if object.Missing {
		return []string{""}
	}
	return object.Fields
}

// nextRepair returns the pause until the first field that waits may be repaired; 0 if none waits.
func (w *work) nextRepair(waiting []objects.Object) (pause time.Duration) {
	now := w.engine.now()
	for _, object := range waiting {
		for _, field := range fieldsOf(object) {
			left := max(w.memory.contests[contested{object.Name, field}].due.Sub(now), time.Second)
			if pause == 0 || left < pause {
				pause = left
			}
		}
	}
	return pause
}

// waits says which fields wait for their repair, and why. It does not change with the time.
func waitsOf(waiting []objects.Object) string {
	var all []string
	for _, object := range waiting {
		for _, field := range fieldsOf(object) {
			all = append(all, strings.TrimSuffix(object.Name+" "+field, " ")+": "+object.Hint(field))
		}
	}
	return strings.Join(all, "; ")
}

package status

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/pkg/content"
)

// Health is that of a CR's children, in words about those that are not Current.
type Health struct {
	// Known is false until they have been observed.
	Known bool
	// All are all of them. Overdue are those that end Ready; the others were Current just now.
	All, Overdue []string
	// Uncounted are the kinds of children that do not count, because they are not watched.
	Uncounted []string
}

// WithHealth makes a report of a success depend on the health of children; nil does not.
func (r Report) WithHealth(h *Health) Report {
	r.health = h
	return r
}

// Observed reports the health of children. It changes only the Ready of a generation that has succeeded.
func Observed(generation int64, h *Health) Report {
	return Report{generation: generation, idle: true, moment: momentObserved, health: h}
}

// WithFields reports fields of the status by their keys; nil removes one.
func WithFields(generation int64, fields map[string]any) Report {
	return Report{generation: generation, idle: true, fields: fields}
}

// healthy returns Ready for a generation that has succeeded. ready is the condition in the status.
func (r Report) healthy(ready map[string]any) []metav1.Condition {
	isReady, message := ready["status"] == string(metav1.ConditionTrue), messageSucceeded
	switch h := r.health; {
	case h == nil:
	case !h.Known && isReady:
		return nil
	case !h.Known:
		return []metav1.Condition{condition(Ready, metav1.ConditionUnknown, ReasonLooking, messageLooking)}
	case isReady && len(h.Overdue) > 0:
		return []metav1.Condition{condition(Ready, metav1.ConditionFalse, ReasonUnhealthy, inWords(h.Overdue))}
	case !isReady && len(h.All) > 0:
		return []metav1.Condition{condition(Ready, metav1.ConditionFalse, ReasonUnhealthy, inWords(h.All))}
	case len(h.Uncounted) > 0:
		message += messageUncounted + inWords(h.Uncounted)
	case isReady && r.moment == momentObserved: // After a restart the next run names the kinds again.
		message, _ = ready["message"].(string)
	}
	return []metav1.Condition{condition(Ready, metav1.ConditionTrue, content.ReasonSuccessful, message)}
}

// messageUncounted precedes the kinds of children that do not count, in the message of Ready.
const messageUncounted = "; not watched: "

// Note returns the part of the condition Ready that no other condition has: why a CR is not ready although its
// run succeeded or was canceled, or which children do not count.
func Note(obj *unstructured.Unstructured) string {
	switch ready := Read(obj, Ready); {
	case ready.Status == "" || ready.Status == metav1.ConditionTrue:
		_, uncounted, _ := strings.Cut(ready.Message, messageSucceeded+messageUncounted)
		if uncounted != "" {
			return strings.TrimPrefix(messageUncounted, "; ") + uncounted
		}
		return ""
	default:
		return ready.Message
	}
}

// inWords names the first children.
func inWords(texts []string) string {
	const shown = 3
	words := strings.Join(texts[:min(len(texts), shown)], "; ")
	if more := len(texts) - shown; more > 0 {
		words += fmt.Sprintf("; and %d more", more)
	}
	return bounded(words, maxReadyMessage)
}

// ChangesReady reports whether the operations change the status of the condition Ready, and not only its text.
func ChangesReady(obj *unstructured.Unstructured, operations []Operation) bool {
	return slices.ContainsFunc(operations, func(o Operation) bool {
		value, _ := o.Value.(map[string]any)
		return value["type"] == string(Ready) && value["status"] != string(Read(obj, Ready).Status)
	})
}

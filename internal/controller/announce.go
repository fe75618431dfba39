package controller

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ensign-operator/ensign/pkg/content"
)

const (
	eventSucceeded = "Succeeded"
	eventFinalized = "Finalized"
	eventAbandoned = "FinalizerAbandoned"
	eventAction    = "Reconcile"
	// maxNote is the API's limit for the note of an Event, in bytes.
	maxNote = 1024
)

// announce makes one Kubernetes Event if the outcome differs from the one before.
func (r *Reconciler) announce(a *attempt) {
	c := a.conclusion
	switch {
	case c.canceled:
		r.event(a, corev1.EventTypeWarning, string(content.ReasonCanceled), c.traced("The run: "+c.Outcome.Message))
	case c.Outcome.Verdict == content.Canceled:
		return
	case c.finalizing && c.Outcome.Verdict == content.Succeeded:
		r.event(a, corev1.EventTypeNormal, eventFinalized, c.traced("The finalizer's run succeeded"))
	case c.Outcome.Verdict == content.Succeeded && c.before.Verdict != content.Succeeded:
		r.event(a, corev1.EventTypeNormal, eventSucceeded, c.traced("The last reconciliation succeeded"))
	case c.Outcome.Verdict == content.Failed && c.Outcome != c.before:
		r.event(a, corev1.EventTypeWarning, string(c.Outcome.Reason), c.traced(c.Outcome.Message))
	}
}

func (r *Reconciler) event(a *attempt, kind, reason, note string) {
	r.Recorder.Eventf(a.cr, nil, kind, reason, eventAction, "%s", cutNote(note, maxNote))
}

// traced returns the note with the ID of the run's trace, if there is one.
func (c *conclusion) traced(note string) string {
	if c.traceID == "" {
		return note
	}
	end := " (trace " + c.traceID + ")"
	return cutNote(note, maxNote-len(end)) + end
}

// cutNote cuts at a rune's boundary, to at most so many bytes.
func cutNote(note string, most int) string {
	const mark = "…"
	if len(note) <= most {
		return note
	}
	return strings.ToValidUTF8(note[:most-len(mark)], "") + mark
}

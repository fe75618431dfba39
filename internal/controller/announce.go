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
	case c.Outcome.Verdict == content.Canceled:
		return
	case c.finalizing && c.Outcome.Verdict == content.Succeeded:
		r.event(a, corev1.EventTypeNormal, eventFinalized, "The finalizer's run succeeded")
	case c.Outcome.Verdict == content.Succeeded && c.before.Verdict != content.Succeeded:
		r.event(a, corev1.EventTypeNormal, eventSucceeded, "The last reconciliation succeeded")
	case c.Outcome.Verdict == content.Failed && c.Outcome != c.before:
		r.event(a, corev1.EventTypeWarning, string(c.Outcome.Reason), c.Outcome.Message)
	}
}

func (r *Reconciler) event(a *attempt, kind, reason, note string) {
	r.Recorder.Eventf(a.cr, nil, kind, reason, eventAction, "%s", cutNote(note))
}

// cutNote cuts at a rune's boundary.
func cutNote(note string) string {
	const mark = "…"
	if len(note) <= maxNote {
		return note
	}
	return strings.ToValidUTF8(note[:maxNote-len(mark)], "") + mark
}

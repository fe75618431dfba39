package controller

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
)

const (
	eventSucceeded = "Succeeded"
	eventFinalized = "Finalized"
	eventAction    = "Reconcile"
	// maxNote is the API's limit for the note of an Event, in bytes.
	maxNote = 1024
)

// announce makes one Kubernetes Event when the outcome is another than the one
// before, and none when nothing changed.
func (r *Reconciler) announce(a *attempt) {
	v := a.verdict
	switch {
	case v.outcome.Verdict == jobevent.Canceled:
		return
	case v.finalizing && v.outcome.Verdict == jobevent.Succeeded:
		r.event(a, corev1.EventTypeNormal, eventFinalized, "The finalizer's run succeeded")
	case v.outcome.Verdict == jobevent.Succeeded && v.before.Verdict != jobevent.Succeeded:
		r.event(a, corev1.EventTypeNormal, eventSucceeded, "The last reconciliation succeeded")
	case v.outcome.Verdict == jobevent.Failed && v.outcome != v.before:
		r.event(a, corev1.EventTypeWarning, string(v.outcome.Reason), v.outcome.Message)
	}
}

func (r *Reconciler) event(a *attempt, kind, reason, note string) {
	r.Recorder.Eventf(a.cr, nil, kind, reason, eventAction, "%s", cutNote(note))
}

// cutNote cuts at a rune's boundary.
func cutNote(note string) string {
	if len(note) <= maxNote {
		return note
	}
	end := 0
	for i := range note {
		if i > maxNote-len("…") {
			break
		}
		end = i
	}
	return note[:end] + "…"
}

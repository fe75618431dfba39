package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/watches"
)

// step is what an attempt does with a CR.
type step int

const (
	skip step = iota
	report
	reportPaused
	rest
	refuse
	addFinalizer
	run
	finalize
)

// runs reports whether the step runs content.
func (s step) runs() bool { return s >= addFinalizer }

// decide returns what is to be done with a CR as it stands. A verdict that is not
// written yet goes first: nothing runs again before its last run is reported.
func decide(cr *unstructured.Unstructured, v version, watch *watches.Watch, st state, now time.Time) step {
	held := holdsFinalizer(watch, cr)
	switch {
	case st.unwritten:
		return report
	case !concernsRuns(cr, watch, held):
		return skip
	case paused(cr):
		return reportPaused
	case !v.deleting && watch.Finalizer != nil && !held:
		return addFinalizer
	case !mustRun(v, st, now):
		return rest
	case v.deleting:
		return finalize
	default:
		return run
	}
}

// mustRun reports whether content must run: no run of the version has come to a verdict, or
// its time has come, or something has made it dirty. What becomes of its children is no
// reason for a CR that is being deleted: its finalizer removes them.
func mustRun(v version, st state, now time.Time) bool {
	switch {
	case st.last == nil || st.version != v:
		return true
	case !st.due.IsZero() && !now.Before(st.due):
		return true
	default:
		return st.dirty != "" && !v.deleting
	}
}

// concernsRuns reports whether anything is ever run for the CR as it stands.
func concernsRuns(cr *unstructured.Unstructured, watch *watches.Watch, held bool) bool {
	if cr.GetDeletionTimestamp() != nil {
		return held
	}
	return watch.Selector.Matches(labels.Set(cr.GetLabels()))
}

// firstBackoff is the pause after a first failure.
const firstBackoff = time.Second

// backoffAfter is the pause after so many failures in a row: doubled each
// time, from one second up to limit.
func backoffAfter(failures int, limit time.Duration) time.Duration {
	pause := firstBackoff
	for i := 1; i < failures && pause < limit; i++ {
		pause *= 2
	}
	return min(pause, limit)
}

// immediately brings a CR back at once. The queue drops a pause of zero.
const immediately = time.Millisecond

// requeueAfter returns the pause until content runs again although nothing changed; 0 is
// never. A CR that was refused runs when it changes, and a canceled one with the next
// manager.
func requeueAfter(v *verdict, backoff time.Duration) time.Duration {
	switch {
	case v.refused || v.outcome.Verdict == jobevent.Canceled:
		return 0
	case v.outcome.Verdict == jobevent.Failed:
		return backoff
	case v.finalizing:
		return 0
	case v.summary.Requeue > 0:
		return v.summary.Requeue
	default:
		return v.period
	}
}

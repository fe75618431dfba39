package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ensign-operator/ensign/internal/content"
	"github.com/ensign-operator/ensign/internal/watches"
)

// step is what an attempt does with a CR.
type step int

const (
	ignore  step = iota // It is not this watch's, or another's finalizer holds it.
	rewrite             // the conclusion that is not written yet
	reportPaused
	upToDate
	refuse       // set by prepare
	addFinalizer // and then run
	run
	finalize
)

// runs reports whether the step runs content.
func (s step) runs() bool { return s >= addFinalizer }

// decide returns what to do with a CR as it was read. A conclusion that has not been
// written yet comes first: content does not run again before its last run is reported.
func decide(cr *unstructured.Unstructured, v version, watch *watches.Watch, st state, now time.Time) step {
	hasFinalizer := holdsFinalizer(watch, cr)
	switch {
	case st.unwritten:
		return rewrite
	case !mayRun(cr, watch, hasFinalizer):
		return ignore
	case paused(watch, cr):
		return reportPaused
	case !v.deleting && watch.Finalizer != nil && !hasFinalizer:
		return addFinalizer
	case !mustRun(v, st, now):
		return upToDate
	case v.deleting:
		return finalize
	default:
		return run
	}
}

// mustRun reports whether content must run: no run of this version has a conclusion, or its
// time has come, or the CR is dirty. A CR that is being deleted is never run for being
// dirty: its finalizer removes its children, and that is what the events are about.
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

// mayRun reports whether content runs at all for the CR as it was read.
func mayRun(cr *unstructured.Unstructured, watch *watches.Watch, hasFinalizer bool) bool {
	if cr.GetDeletionTimestamp() != nil {
		return hasFinalizer
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

// immediately is the shortest pause: the queue drops a pause of zero.
const immediately = time.Millisecond

// requeueAfter returns the pause until content runs again although nothing changed; 0 is
// never. A refused CR runs when it changes. A canceled run is repeated by the next manager.
func requeueAfter(c *conclusion, backoff time.Duration) time.Duration {
	switch {
	case c.refused || c.Outcome.Verdict == content.Canceled:
		return 0
	case c.Outcome.Verdict == content.Failed:
		return backoff
	case c.finalizing:
		return 0
	case c.RequeueAfter > 0:
		return c.RequeueAfter
	default:
		return c.period
	}
}

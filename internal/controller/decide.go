package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ensign-operator/ensign/internal/jobevent"
	"github.com/ensign-operator/ensign/internal/watches"
)

// step is what an attempt does with a CR.
type step int

const (
	skip step = iota
	reportPending
	reportPaused
	refuseAnnotations
	comeBack
	rest
	addFinalizer
	run
	finalize
)

// known is what decide cannot see in the CR alone.
type known struct {
	// pending is true while a result of the CR is not written yet.
	pending bool
	// admitted is true where a slot is held, without which nothing runs.
	admitted bool
	// mayRest is true for a CR that an earlier manager left as it should be.
	mayRest bool
}

// decide says what is to be done with a CR as it stands. A result that is not
// written yet goes first: nothing runs again before its last run is reported.
func decide(cr *unstructured.Unstructured, watch *watches.Watch, k known) step {
	held := holdsFinalizer(watch, cr)
	switch {
	case k.pending:
		return reportPending
	case !concernsRuns(cr, watch, held):
		return skip
	case paused(cr):
		return reportPaused
	case refusedAnnotations(cr) != nil:
		return refuseAnnotations
	case !k.admitted:
		return comeBack // It seemed to be gone: another object has its name by now.
	case cr.GetDeletionTimestamp() != nil:
		return finalize
	case watch.Finalizer != nil && !held:
		return addFinalizer
	case k.mayRest:
		return rest
	default:
		return run
	}
}

// concernsRuns tells whether anything is ever run for the CR as it stands.
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

// soon brings a CR back at once. The queue drops a pause of zero.
const soon = time.Millisecond

// requeueAfter says when the CR comes again by itself; 0 is never. A CR that
// was refused comes when it changes, and a canceled one with the next manager.
func requeueAfter(v *verdict, generation int64, backoff time.Duration) time.Duration {
	switch {
	case v.generation != generation:
		return soon // The verdict was an earlier generation's, written late.
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

package controller

import (
	"time"

	"github.com/ensign-operator/ensign/pkg/content"
)

// step is the next thing that an attempt does with a CR.
type step int

const (
	ignore  step = iota // It is not this watch's, or another's finalizer holds it.
	abandon             // Remove the finalizer without its run.
	rewrite             // the conclusion that is not written yet
	reportPaused
	upToDate
	rest         // An earlier manager ran the version, as the CR's status proves.
	throttled    // Content must run, and the throttle lets it begin later.
	addFinalizer // and then run
	run
	finalize
)

// runs reports whether the step runs content.
func (s step) runs() bool { return s >= addFinalizer }

// decision is what to do with a CR.
type decision struct {
	step step
	// trigger is why content must run; noTrigger if it need not.
	trigger trigger
	// until is when the throttle lets a throttled run begin. empty is true if the CR's bucket is empty,
	// and false if the CR fails.
	until time.Time
	empty bool
}

// finalizing reports whether the content of the finalizer is to run.
func (d decision) finalizing() bool { return d.step == finalize }

// decide returns the step for a CR, by the attempt's observation and the state. Nothing else makes a step: a
// refusal and a pause that comes late only end the attempt. A conclusion that has not been
// written yet comes first: content does not run again before its last run is reported. But
// somebody who gives a CR up does not wait for that.
func decide(o *observation, st *state, now time.Time) decision {
	switch {
	case o.hasFinalizer && o.version.abandoned:
		return decision{step: abandon}
	case st.unwritten:
		return decision{step: rewrite}
	case !o.selected:
		return decision{step: ignore}
	case o.paused:
		return decision{step: reportPaused}
	}
	d := decision{trigger: triggerOf(o, st, now)}
	d.until, d.empty = waitsUntil(d.trigger, st)
	switch {
	case d.trigger == noTrigger:
		d.step = upToDate
	case now.Before(d.until):
		d.step = throttled
	case o.missesFinalizer:
		d.step = addFinalizer
	case o.version.deleting:
		d.step = finalize
	case o.proof.succeeded:
		d.step = rest
	default:
		d.step = run
	}
	return d
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
	case c.Outcome.Verdict == content.Failed && c.RequeueAfter > 0:
		return min(c.RequeueAfter, backoff)
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

package controller

import (
	"time"

	"github.com/ensign-operator/ensign/pkg/content"
)

// The throttle bounds how often content runs for one CR, whatever triggers it: see
// docs/reference-triggers.md. Each trigger belongs to one of these classes.
type trigger int

const (
	noTrigger trigger = iota
	// byUser: somebody wants this run: a new spec or request that no run wrote, a deletion, the
	// first run of this manager. It never waits.
	byUser
	// scheduled: the pause is over that was set at the end of the last run. It never waits.
	scheduled
	// byOtherCR: somebody may want this run, but runs of other CRs can cause it again and again.
	// It takes a token of the CR's bucket.
	byOtherCR
	// bySelfOrChild: another object, an annotation, or the CR's own run. While the CR fails, it waits
	// for the back-off. Otherwise it takes a token.
	bySelfOrChild
)

// takesToken reports whether a run of the trigger takes a token of the bucket.
func (t trigger) takesToken() bool { return t == byOtherCR || t == bySelfOrChild }

const (
	// bucketSize is how many runs that take a token begin without a pause.
	bucketSize = 10
	// quietTime gives one token back when it passes and no trigger waits.
	quietTime = time.Minute
	// maxReturned is how many tokens progress gives back until somebody asks for a run.
	maxReturned = 3 * bucketSize
)

// triggerOf returns why content must run for the CR as it was read.
func triggerOf(a *attempt, missesFinalizer bool, now time.Time) trigger {
	v, st := a.version, &a.state
	switch {
	case st.isNew(), v.deleting && !st.version.deleting:
		return byUser
	case !st.due.IsZero() && !now.Before(st.due):
		return scheduled
	case !v.sameSpec(st.version), v.requestsAnew(st.version):
		return a.writer.trigger()
	case !v.deleting && (a.dirty == causeResumed || a.dirty == causeSelected):
		return byOtherCR
	case st.version != v, st.last == nil, missesFinalizer:
		return bySelfOrChild
	case a.dirty != "" && !v.deleting: // A finalizer's run removes children. The events are about that.
		return bySelfOrChild
	default:
		return noTrigger
	}
}

// waitsUntil returns before when the throttle lets no run of the trigger begin, and whether that
// is because the bucket is empty. The zero time is none.
func waitsUntil(t trigger, st *state) (until time.Time, empty bool) {
	switch {
	case !t.takesToken():
		return time.Time{}, false
	case t == bySelfOrChild && st.failing():
		return st.due, false
	default:
		return st.throttle.opens, true
	}
}

// failing reports whether the last run failed, so that the next one is due after a pause, whatever
// triggers it.
func (st *state) failing() bool {
	return st.last != nil && !st.last.refused && !st.last.WaitingForObject && st.last.Outcome.Verdict == content.Failed && !st.due.IsZero()
}

// throttle is the bucket of a CR: the runs that took a token, less those that a quiet time gave
// back. When it is empty, each further run waits for a longer pause, as after failures.
type throttle struct {
	taken int
	// returned is how many of them progress has given back since somebody asked for a run.
	returned int
	// ended is when the last run that took a token, or that a waiting trigger got, began or ended.
	ended time.Time
	// counts is true during such a run.
	counts bool
	// opens is when the next token is there; the zero time is at once.
	opens time.Time
	// since is since when a trigger waits; the zero time is none.
	since time.Time
	// slowedBy is the trigger that starts the CR's runs too often, as the log shows it; "" if there
	// is none.
	slowedBy string
}

// takenAt returns how many tokens are missing, less those of the quiet time until now.
func (b *throttle) takenAt(now time.Time) int {
	if !b.since.IsZero() {
		now = b.since
	}
	return max(0, b.taken-int(max(0, now.Sub(b.ended))/quietTime))
}

// progress gives back a token for each child that has become Current: a role that works in steps, each
// after the child of the step before, does not wait. Its limit slows down a role that makes its
// children unready with each run.
func (b *throttle) progress(children int, now time.Time) {
	tokens := min(children, b.takenAt(now), maxReturned-b.returned)
	b.taken, b.returned = b.taken-tokens, b.returned+tokens
	if b.taken < bucketSize {
		b.opens = time.Time{}
	}
}

// begin is called when a run begins.
func (b *throttle) begin(t trigger, now time.Time, limit time.Duration) {
	if t == byUser {
		b.returned = 0
	}
	b.counts = t.takesToken() || !b.since.IsZero()
	if !b.counts {
		return
	}
	b.taken = b.takenAt(now)
	if t.takesToken() {
		b.taken++
	}
	b.since = time.Time{}
	b.setPause(now, limit) // Where the run comes to no conclusion.
}

// end is called when a run has ended.
func (b *throttle) end(now time.Time, limit time.Duration) {
	if b.counts {
		b.counts = false
		b.setPause(now, limit)
	}
}

func (b *throttle) setPause(now time.Time, limit time.Duration) {
	b.ended, b.opens = now, time.Time{}
	if over := b.taken - bucketSize; over >= 0 {
		b.opens = now.Add(backoffAfter(over+1, limit))
	}
}

// recovers returns when the bucket has a token again if no trigger comes.
func (b *throttle) recovers() time.Time {
	return b.ended.Add(time.Duration(b.taken-bucketSize+1) * quietTime)
}

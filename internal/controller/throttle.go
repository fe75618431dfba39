package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/internal/controller/status"
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
func triggerOf(o *observation, st *state, now time.Time) trigger {
	v := o.version
	switch {
	case st.isNew(), v.deleting && !st.version.deleting:
		return byUser
	case !st.due.IsZero() && !now.Before(st.due):
		return scheduled
	case !v.sameSpec(st.version), v.requestsAnew(st.version):
		return o.writer.trigger()
	case !v.deleting && (o.dirty == causeResumed || o.dirty == causeSelected):
		return byOtherCR
	case st.version != v, st.last == nil, o.missesFinalizer:
		return bySelfOrChild
	case o.dirty != "" && !v.deleting: // A finalizer's run removes children. The events are about that.
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

// eventSlowedDown is the reason of the Event and the condition of a CR whose bucket is empty.
const eventSlowedDown = "SlowedDown"

// throttle keeps a run back until the throttle lets it begin. The trigger is not lost: it stays in
// the state, and requeue brings the CR back.
func (r *Reconciler) throttle(ctx context.Context, a *attempt) error {
	now, b := r.Clock.Now(), &a.state.throttle
	a.mailbox.setThrottled(a.version)
	if b.since.IsZero() {
		b.since = now
		if r.Meter != nil {
			r.Meter.TriggerThrottled(r.Watch.GVK, !a.empty)
		}
	}
	if a.empty && b.slowedBy == "" {
		cause := a.cause(now)
		r.setSlowedBy(a, cause)
		log.FromContext(ctx).Info("WARNING: too many triggers; slowing down the runs of the resource, which may trigger themselves", "trigger", cause, "nextRun", a.until.Sub(now).String())
		r.event(a, corev1.EventTypeWarning, eventSlowedDown, status.MessageSlowed(cause))
	}
	return r.reportThrottle(ctx, a)
}

// reportThrottle makes the status show whether the CR's runs are slowed down, and the reason. It
// writes nothing if the status shows that already.
func (r *Reconciler) reportThrottle(ctx context.Context, a *attempt) error {
	b := &a.state.throttle
	if b.slowedBy != "" && b.since.IsZero() && b.takenAt(r.Clock.Now()) < bucketSize {
		r.setSlowedBy(a, "")
		log.FromContext(ctx).Info("triggers are back to normal; runs are no longer slowed down")
	}
	switch shown := status.Read(a.cr, status.SlowedDown).Message; {
	case b.slowedBy == "" && shown == "", b.slowedBy != "" && shown == status.MessageSlowed(b.slowedBy):
		return nil
	}
	return r.writeInterim(ctx, a, status.Slowed(a.cr.GetGeneration(), b.slowedBy))
}

// setSlowedBy records the trigger that slows the CR's runs down, "" if there is none, and counts
// it.
func (r *Reconciler) setSlowedBy(a *attempt, by string) {
	was := a.state.throttle.slowedBy
	a.state.throttle.slowedBy = by
	number := r.slowed.Load()
	switch {
	case was == by:
		return
	case was == "":
		number = r.slowed.Add(1)
	case by == "":
		number = r.slowed.Add(-1)
	}
	if r.Meter != nil {
		r.Meter.SetSlowed(r.Watch.GVK, int(number))
	}
}

// nextLook returns when the CR is looked at again if no event comes: when its next run is due,
// when the throttle lets a throttled run begin, or when its runs are not slowed down any more. The zero
// time is never.
func nextLook(a *attempt, now time.Time) time.Time {
	st := &a.state
	next := st.due
	soonest := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if a.step == throttled {
		soonest(a.until)
	}
	if !a.healthNext.IsZero() {
		soonest(a.healthNext)
	}
	if st.throttle.slowedBy != "" && st.throttle.since.IsZero() {
		soonest(st.throttle.recovers())
	}
	if a.step.runs() && st.throttle.slowedBy == "" && status.Read(a.cr, status.SlowedDown).Status != "" {
		soonest(now) // An earlier manager has said so.
	}
	return next
}

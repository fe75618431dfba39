package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/internal/controller/status"
)

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

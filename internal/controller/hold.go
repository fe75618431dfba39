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

// hold keeps a run back until the brake lets it begin. The trigger is not lost: it stays in
// the state, and requeue brings the CR back.
func (r *Reconciler) hold(ctx context.Context, a *attempt) error {
	now, slowed, first := r.Clock.Now(), "", false
	r.states.update(a.request.NamespacedName, func(st *state) {
		st.heldFor = a.version
		if first = st.brake.since.IsZero(); first {
			st.brake.since = now
		}
		if a.empty && st.brake.slowedBy == "" {
			slowed = a.cause(now)
			st.brake.slowedBy = slowed
		}
	})
	if first && r.Meter != nil {
		r.Meter.TriggerHeld(r.Watch.GVK, !a.empty)
	}
	if slowed != "" {
		log.FromContext(ctx).Info("WARNING: the resource is triggered again and again, and its runs are slowed down; they may trigger themselves", "trigger", slowed, "nextRun", a.until.Sub(now).String())
		r.event(a, corev1.EventTypeWarning, eventSlowedDown, status.MessageSlowed(slowed))
		r.countSlowed()
	}
	return r.reportBrake(ctx, a)
}

// reportBrake makes the status show whether the CR's runs are slowed down, and by what. It
// writes nothing if the status shows that already.
func (r *Reconciler) reportBrake(ctx context.Context, a *attempt) error {
	now, over := r.Clock.Now(), false
	var slowedBy string
	r.states.update(a.request.NamespacedName, func(st *state) {
		b := &st.brake
		if over = b.slowedBy != "" && b.since.IsZero() && b.takenAt(now) < bucketSize; over {
			b.slowedBy = ""
		}
		slowedBy = b.slowedBy
	})
	if over {
		log.FromContext(ctx).Info("the resource is not triggered too often any more; its runs are not slowed down")
		r.countSlowed()
	}
	switch shown := status.Read(a.cr, status.SlowedDown).Message; {
	case slowedBy == "" && shown == "", slowedBy != "" && shown == status.MessageSlowed(slowedBy):
		return nil
	}
	return r.writeInterim(ctx, a, status.Slowed(a.cr.GetGeneration(), slowedBy))
}

func (r *Reconciler) countSlowed() {
	if r.Meter != nil {
		r.Meter.SetSlowed(r.Watch.GVK, r.states.slowed())
	}
}

// nextLook returns when the CR is looked at again if no event comes: when its next run is due,
// when the brake lets a held run begin, or when its runs are not slowed down any more. The zero
// time is never.
func nextLook(a *attempt, st *state, now time.Time) time.Time {
	next := st.due
	soonest := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if a.step == held {
		soonest(a.until)
	}
	if st.brake.slowedBy != "" && st.brake.since.IsZero() {
		soonest(st.brake.recovers())
	}
	if a.step.runs() && st.brake.slowedBy == "" && status.Read(a.cr, status.SlowedDown).Status != "" {
		soonest(now) // An earlier manager has said so.
	}
	return next
}

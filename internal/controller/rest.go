package controller

import (
	"context"
	"time"

	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/pkg/content"
)

// proof says whether the CR's status proves that an earlier manager ran its version
// successfully with the same content, and that the period has not elapsed since.
type proof struct {
	succeeded bool
	// due is when the period is over; the zero time is never.
	due time.Time
}

// proofOf returns the proof of the attempt's version. The status of a kind without a status
// subresource proves nothing: everyone who may write the CR may write it. ctx ends with the manager.
func (r *Reconciler) proofOf(ctx context.Context, a *attempt) proof {
	if a.state.last != nil || a.dirty != "" || r.NoStatus || r.Digest == "" {
		return proof{}
	}
	if r.Translates && a.cr.GetDeletionTimestamp() == nil && mayRun(a.cr, &r.Watch, false) && !paused(&r.Watch, a.cr) {
		r.prepare(ctx, a)
	}
	a.digest = r.digestWith(ctx, a)
	ended, ok := status.SucceededWith(a.cr, a.digest)
	period, err := r.periodOf(a.cr)
	now := r.Clock.Now()
	// If the clock was wrong then, the pause is still not longer than a period.
	left := min(period, period-now.Sub(ended))
	switch {
	case !ok, err != nil, period > 0 && left <= 0:
		return proof{}
	case period == 0:
		return proof{succeeded: true}
	default:
		return proof{succeeded: true, due: now.Add(left)}
	}
}

// rest takes the result of an earlier manager's run from the CR's status.
func (a *attempt) rest() {
	a.setVersion()
	a.state.last, a.state.due = &conclusion{Result: content.Result{Outcome: a.before}}, a.proof.due
}

package controller

import (
	"context"
	"slices"
	"time"

	"github.com/ensign-operator/ensign/internal/controller/status"
)

// healthWritePause is the shortest time between two writes of the same Ready with another text.
const healthWritePause = 10 * time.Second

// health returns the report of the health of the CR's children; nil if it does not count. It sets
// when to look again.
func (r *Reconciler) health(a *attempt) *status.Health {
	if r.Watch.Health == nil || r.Related == nil || a.cr.GetDeletionTimestamp() != nil {
		return nil
	}
	found := r.Related.Health(r.Watch.GVK, a.request.NamespacedName)
	a.healthNext = found.Next
	var missing []string
	if last := a.state.last; last != nil {
		for _, object := range last.Missing {
			missing = append(missing, object+": not found")
		}
	}
	return &status.Health{Known: found.Known, All: slices.Concat(missing, found.All), Overdue: slices.Concat(missing, found.Overdue)}
}

// reportChildren makes Ready show the health of the CR's children, if its generation has succeeded, and the
// status the fields of children.
func (r *Reconciler) reportChildren(ctx context.Context, a *attempt) error {
	health, fields := r.health(a), map[string]any(nil)
	if r.Related != nil && len(r.Watch.StatusFrom) > 0 && a.cr.GetDeletionTimestamp() == nil {
		fields = r.Related.StatusFrom(r.Watch.GVK, a.request.NamespacedName)
	}
	if (health == nil || !health.Known) && len(fields) == 0 {
		return nil
	}
	report := status.Observed(a.cr.GetGeneration(), health, fields)
	operations := r.merge(report)(a.cr)
	if len(operations) == 0 {
		return nil
	}
	now, next := r.Clock.Now(), a.state.healthWritten.Add(healthWritePause)
	if !status.ChangesReady(a.cr, operations) && now.Before(next) {
		a.healthNext = next
		return nil
	}
	a.state.healthWritten = now
	return r.writeInterim(ctx, a, report)
}

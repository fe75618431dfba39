package controller

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
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
	a.lookBy(found.Next)
	var missing []string
	if last := a.state.last; last != nil {
		for _, object := range last.Missing {
			if kind, name, _ := strings.Cut(object, " "); r.Watch.Health.Ignores(kind, name[strings.LastIndex(name, "/")+1:]) {
				continue
			}
			missing = append(missing, object+": not found")
		}
	}
	return &status.Health{Known: found.Known, All: slices.Concat(missing, found.All), Overdue: slices.Concat(missing, found.Overdue), Uncounted: found.Uncounted}
}

// lookBy sets the next look at the CR's children to t at the latest; the zero time sets nothing.
func (a *attempt) lookBy(t time.Time) {
	if a.healthNext.IsZero() || !t.IsZero() && t.Before(a.healthNext) {
		a.healthNext = t
	}
}

// lookAgain sets a look at the fields of children after a run and after a start: informers may show a child
// late, and tell nothing where only its owner has changed.
func (r *Reconciler) lookAgain(a *attempt) {
	if len(r.Watch.StatusFrom) > 0 {
		a.lookBy(r.Clock.Now().Add(healthWritePause))
	}
}

// reportChildren makes Ready show the health of the CR's children, if its generation has succeeded, and the
// status the fields of children.
func (r *Reconciler) reportChildren(ctx context.Context, a *attempt) error {
	fields := r.childFields(a)
	reports, operations := r.childReports(a, fields)
	if len(operations) == 0 {
		return nil
	}
	now, next := r.Clock.Now(), a.state.healthWritten.Add(healthWritePause)
	if !status.ChangesReady(a.cr, operations) && now.Before(next) {
		a.lookBy(next)
		return nil
	}
	a.state.healthWritten = now
	var errs []error
	for _, report := range reports {
		errs = append(errs, r.writeInterim(ctx, a, report))
	}
	err := errors.Join(errs...)
	if err == nil {
		a.state.fields = fields
	}
	return err
}

// childFields returns the fields of children that the status shows; nil if it shows none.
func (r *Reconciler) childFields(a *attempt) map[string]any {
	if r.Related == nil || len(r.Watch.StatusFrom) == 0 || a.cr.GetDeletionTimestamp() != nil {
		return nil
	}
	return r.Related.StatusFrom(r.Watch.GVK, a.request.NamespacedName)
}

// childReports returns the reports about children that change the status, and their changes. Ready has a
// report of its own, which is written although the kind's schema refuses a field. Ready stays as it is until
// the health is known. Where the schema drops fields, the same ones are not written again.
func (r *Reconciler) childReports(a *attempt, fields map[string]any) (reports []status.Report, operations []status.Operation) {
	generation, all := a.cr.GetGeneration(), []status.Report(nil)
	if health := r.health(a); health != nil && health.Known {
		all = append(all, status.Observed(generation, health))
	}
	if fields != nil && !(r.drops.Load() && reflect.DeepEqual(fields, a.state.fields)) {
		all = append(all, status.WithFields(generation, fields))
	}
	for _, report := range all {
		if changes := r.merge(report)(a.cr); len(changes) > 0 {
			reports, operations = append(reports, report), append(operations, changes...)
		}
	}
	return reports, operations
}

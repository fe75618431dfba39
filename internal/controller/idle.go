package controller

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/slots"
	"github.com/ensign-operator/ensign/internal/status"
)

// leaveAlone is the part of an attempt that runs nothing: of what the CR is as it was
// read there will be no run.
func (r *Reconciler) leaveAlone(ctx context.Context, a *attempt) error {
	r.memories.rests(a.cr)
	if a.step != reportPaused {
		return nil
	}
	log.FromContext(ctx).Info("nothing is run: the resource is paused by its annotation", "annotation", pausedAnnotation)
	return r.writeInterim(ctx, a, status.Paused(a.cr.GetGeneration()))
}

// comesAgain says when a CR comes back whose attempt has nothing to tell.
func (r *Reconciler) comesAgain(ctx context.Context, a *attempt) reconcile.Result {
	switch a.step {
	case reportPaused:
		return reconcile.Result{RequeueAfter: r.memories.pausedAs(a.cr)}
	case comeBack:
		return reconcile.Result{RequeueAfter: r.memories.found(a.cr)}
	case rest:
		a.memory.met = true
		log.FromContext(ctx).V(1).Info("nothing changed since its last run", "comesAgainAfter", a.rest)
		return reconcile.Result{RequeueAfter: a.rest, Priority: priority(slots.Usual)}
	case skip, reportPending, refuseAnnotations, addFinalizer, run, finalize:
	}
	return reconcile.Result{}
}

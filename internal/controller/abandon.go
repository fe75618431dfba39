package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/pkg/content"
)

// abandonTimeout bounds the look for the remains of a CR whose annotation abandon is set. The CR
// must not hang on it.
const abandonTimeout = 30 * time.Second

// abandon removes the finalizer without a run, because the annotation abandon is set. The log and
// an Event name the remains. The API server refuses the Event in a namespace that is being deleted.
func (r *Reconciler) abandon(ctx, runCtx context.Context, a *attempt) error {
	left := r.leftBehind(runCtx, a, content.Request{Object: a.cr, Finalizing: true})
	if err := r.removeFinalizer(ctx, a); err != nil {
		return err
	}
	log.FromContext(ctx).Info("WARNING: removing the finalizer although its content did not succeed, because of the annotation", "annotation", saysTrue(&r.Watch, a.cr, abandonSuffix), "left", left)
	r.event(a, corev1.EventTypeWarning, eventAbandoned, "The finalizer is removed, because the annotation abandon is set: "+left)
	return nil
}

// CauseNotSelected is in the answer NotFound about a CR that is there, but not this manager's.
const CauseNotSelected metav1.CauseType = "NotSelected"

// recordedSource makes requests of the CRs of which the content has records, and which went while no manager ran. The
// attempt names the remains: no other one of the name, such as the first of a new CR, runs beside it.
type recordedSource struct {
	*Supervisor
	*Reconciler
}

func (s recordedSource) String() string { return "records of resources" }

// Start implements source.Source.
func (s recordedSource) Start(ctx context.Context, q queue) error {
	synced, err := s.synced(ctx)
	if err != nil {
		return err
	}
	go func() {
		if wait.PollUntilContextCancel(ctx, syncInterval, true, synced) == nil {
			s.request(ctx, q)
		}
	}()
	return nil
}

func (s recordedSource) request(ctx context.Context, q queue) {
	recorded, err := s.Recorded(ctx)
	if err != nil && ctx.Err() == nil {
		s.Logger.Info("WARNING: cannot name the remains of resources that were deleted while no manager ran; the next start tries again", "error", err.Error())
	}
	for name, uid := range recorded {
		request := reconcile.Request{NamespacedName: name}
		if ctx.Err() != nil || s.Cache.Get(ctx, name, s.object()) == nil {
			continue
		}
		if _, err := s.get(ctx, request); apierrors.IsNotFound(err) {
			s.states.of(name).mailbox.setRecorded(uid)
			q.Add(request)
		}
	}
}

// nameLeft names the remains of a CR that is gone although the manager has not removed its
// finalizer. A kind that is not served, and a CR that this manager does not select, prove nothing.
func (r *Reconciler) nameLeft(ctx context.Context, a *attempt, notFound error) {
	uid := a.state.version.uid
	if !r.Watch.ContentKind().TracksObjects || uid == "" || a.state.released || apierrors.HasStatusCause(notFound, metav1.CauseTypeUnexpectedServerResponse) || apierrors.HasStatusCause(notFound, CauseNotSelected) {
		return
	}
	a.cr = &unstructured.Unstructured{}
	a.cr.SetGroupVersionKind(r.Watch.GVK)
	a.cr.SetNamespace(a.request.Namespace)
	a.cr.SetName(a.request.Name)
	a.cr.SetUID(uid)
	left := r.leftBehind(ctx, a, content.Request{Object: a.cr, Finalizing: true, Gone: true})
	if left == "" {
		return
	}
	left = "Delete the remaining objects with kubectl delete, or create the resource again and delete it: " + left
	log.FromContext(ctx).Info("WARNING: the resource was deleted before its finalizer's content succeeded", "left", left)
	r.event(a, corev1.EventTypeWarning, eventAbandoned, "The resource was deleted before its finalizer's content succeeded. "+left)
}

// leftBehind asks the content for the remains of the CR. ctx ends with the manager.
func (r *Reconciler) leftBehind(ctx context.Context, a *attempt, of content.Request) string {
	ctx, cancel := context.WithTimeout(ctx, abandonTimeout)
	defer cancel()
	work, _ := r.Content.Prepare(ctx, of) // A refusal does not matter: nothing runs.
	if work == nil {
		return "the finalizer's content did not succeed, because it refuses the resource"
	}
	job := content.Job{Run: r.describe(a), Working: func(string) {}}
	if username, err := r.Watch.ServiceAccount.Username(a.cr, r.Defaults.ServiceAccount); err == nil {
		if grant, err := r.Access.Grant(a.cr, username, nil); err == nil {
			defer grant.Revoke()
			job.Kubeconfig = grant.Kubeconfig
		}
	}
	return work.Abandon(ctx, job)
}

package controller

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

const cancelAnnotation = watches.AnsibleAnnotations + cancelSuffix

// annotates is annotate for a CR that keeps its other annotations.
func (b *bench) annotates(name, value string) {
	cr := b.stored()
	annotations := cr.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	cr.SetAnnotations(annotations)
	if err := b.client.Update(b.t.Context(), cr); err != nil {
		b.t.Error(err)
	}
}

// cancels writes the annotation and tells the handler.
func (b *bench) cancels(ctx context.Context, at string) {
	before := b.stored()
	b.annotates(cancelAnnotation, at)
	q := priorityqueue.New[reconcile.Request]("test")
	defer q.ShutDown()
	b.handler().Update(ctx, crUpdated{ObjectOld: before, ObjectNew: b.stored()}, q)
}

func TestARunIsCanceledByItsAnnotation(t *testing.T) {
	b := newBench(t, plainWatch(), widget(withAnnotations(map[string]string{requestedAnnotation: "now"})), interceptor.Funcs{})
	b.runner.run = func(ctx context.Context, _ runner.Spec) runner.Result {
		b.mailbox().markDirty(causeRelated + "ConfigMap a changed")
		b.cancels(ctx, "1")
		if context.Cause(ctx) != errCanceled { //nolint:errorlint // A cause is compared by identity.
			t.Errorf("the run goes on: %v", context.Cause(ctx))
		}
		return runner.Result{Outcome: content.Outcome{Verdict: content.Canceled, Reason: content.ReasonCanceled}}
	}
	wantEqual(t, 0*time.Second, b.mustReconcile().RequeueAfter)
	for range 2 {
		b.mustReconcile()
	}
	wantEqual(t, 1, len(b.runner.specs))
	wantEqual(t, []string{"Warning Canceled The run: it was canceled by the annotation cancel-requested-at"}, b.events())
	cr := b.stored()
	wantEqual(t, "now", status.Request(cr))
	for kind, want := range map[status.Type]string{status.Running: "False", status.Ready: "False", status.Stalled: "True"} {
		got := status.Read(cr, kind)
		wantEqual(t, want+" Canceled", string(got.Status)+" "+got.Reason)
	}

	// An annotation that stays does not end the next run.
	b.runner.run = succeed
	b.annotates(requestedAnnotation, "again")
	b.mustReconcile()
	wantEqual(t, 2, len(b.runner.specs))
	wantEqual(t, metav1.ConditionTrue, status.Read(b.stored(), status.Ready).Status)
}

func TestACancelationOfNothing(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.mustReconcile()
	b.cancels(t.Context(), "1")
	b.mustReconcile()
	wantEqual(t, 1, len(b.runner.specs))
}

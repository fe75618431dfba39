package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Once is one run that somebody asked for, whatever ran for the CR before.
type Once struct {
	CR *unstructured.Unstructured
	// Finalizing runs the content of the watch's finalizer, which must have one.
	Finalizing bool
	// ReportStatus writes the result to the CR's status.
	ReportStatus bool
}

// RunOnce prepares and executes the run as an attempt of Reconcile would. It decides
// nothing, waits for no slot and writes no finalizer. A CR that is refused gives the
// outcome that says why. It uses the Reconciler's Watch, Defaults, Content, Access
// and Clock, and for ReportStatus also Client, Reader and Attempts.
func (r *Reconciler) RunOnce(ctx context.Context, o Once) (content.Outcome, error) {
	a := newOnce(r, o)
	if r.prepare(ctx, a); a.refusal != nil {
		return *a.refusal, r.reportOnce(ctx, a, o, conclusion{refused: true, Result: content.Result{Outcome: *a.refusal}})
	}
	grant, err := r.Access.Grant(a.cr, a.username, a.work.Labels())
	if err != nil {
		return content.Outcome{}, fmt.Errorf("open the API to the run: %w", err)
	}
	defer grant.Revoke()
	a.readies.addOf(a.cr)
	result := r.observe(ctx, a.work, content.Job{Run: r.describe(a), Kubeconfig: grant.Kubeconfig, Working: func(string) {}, Denied: grant.Denied})
	return result.Outcome, r.reportOnce(ctx, a, o, conclusion{Result: result, ended: r.Clock.Now(), wroteReady: grant.Readies.beyond(&a.readies)})
}

func newOnce(r *Reconciler, o Once) *attempt {
	return &attempt{
		request: reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o.CR)}, entry: &entry{},
		look: look{cr: o.CR, version: versionOf(&r.Watch, o.CR), before: status.Last(o.CR), finalizing: o.Finalizing},
	}
}

// reportOnce writes no digest: the manager runs the content once more, with its own
// settings. It writes no time of a retry, because nobody retries.
func (r *Reconciler) reportOnce(ctx context.Context, a *attempt, o Once, c conclusion) error {
	if !o.ReportStatus {
		return nil
	}
	r.conclude(a, c)
	a.conclusion.next = time.Time{}
	return r.writeResult(context.WithoutCancel(ctx), a)
}

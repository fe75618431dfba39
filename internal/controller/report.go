package controller

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/pkg/content"
)

// conclusion is the report of one attempt: of a run, or of the refusal to run. The next attempt
// compares with it, and writes it to the API server if this one could not.
type conclusion struct {
	content.Result

	version version
	// answered is the request that the status is to show as answered; "" is none.
	answered string
	// requested is true if somebody has asked for the run.
	requested bool
	// before is the outcome before this one, which an Event has announced.
	before     content.Outcome
	finalizing bool
	// refused is true when nothing was run.
	refused bool
	// period is the pause until the next run after a success; 0 is none.
	period time.Duration
	// digest is that of all that a successful run depended on.
	digest string
	// wroteReady is true if the run has written the condition Ready.
	wroteReady bool
	// stalled is true if runs have failed the same way until the back-off reached its limit.
	stalled bool
	// canceled is true if the CR's annotation has ended the run.
	canceled bool
	// ended is when the run ended; zero if nothing has run. next is when content runs again
	// although nothing changes, if that is not after the period; zero if not so.
	ended, next time.Time
	// traceID is that of the run's trace; "" if there is none.
	traceID string
	// written tells the content that the conclusion is in the status; nil if nothing ran, or once it has been called.
	written func()
	// refusals counts how often the API server has refused to store the conclusion.
	refusals int
}

// conclude sets the conclusion of the attempt and stores it in the CR's state.
func (r *Reconciler) conclude(a *attempt, c conclusion) {
	st, now := &a.state, r.Clock.Now()
	c.version, c.finalizing, c.before, c.requested = a.version, a.finalizing(), a.before, a.requested()
	a.setVersion()
	if c.canceled || c.Outcome.Verdict != content.Canceled { // The next manager answers the other canceled runs.
		c.answered = answers(a.version.requested, st.answered, status.Request(a.cr))
		st.answered = a.version.requested
	}
	switch {
	case c.refused, c.canceled:
		a.mailbox.take() // Only a change or a later event makes a run of it.
	case c.Outcome.Verdict == content.Failed:
		st.failures++
		if !status.SameFailure(c.before, c.Outcome) {
			st.repeats = 0
		}
		st.repeats++
	default:
		st.failures, st.repeats = 0, 0
	}
	c.stalled = c.canceled || c.Outcome.Verdict == content.Failed && backoffAfter(st.repeats, r.Defaults.MaxBackoff) >= r.Defaults.MaxBackoff
	if !c.refused {
		st.throttle.end(now, r.Defaults.MaxBackoff)
	}
	if c.Outcome.Verdict == content.Failed || c.RequeueAfter > 0 {
		if after := requeueAfter(&c, backoffAfter(st.failures, r.Defaults.MaxBackoff)); after > 0 {
			c.next = now.Add(after)
		}
	}
	r.states.move(a.entry, c.phaseAfter())
	a.conclusion = &c
	st.last, st.unwritten, st.due = &c, true, time.Time{}
}

// report returns the status of a conclusion.
func (c *conclusion) report() status.Report {
	report := status.Finished(c.version.generation, c.Result).WithRun(status.LastRun{Ended: c.ended, Next: c.next, Version: c.Version})
	report = report.WithRequest(c.answered).Repeated(c.stalled).ReadyBy("", c.wroteReady)
	// A role that asked for a requeue must run again, also after a restart of the manager.
	if c.Outcome.Verdict == content.Succeeded && !c.finalizing && c.RequeueAfter == 0 && len(c.Missing) == 0 {
		report = report.WithDigest(c.digest)
	}
	return report
}

const (
	eventSucceeded = "Succeeded"
	eventFinalized = "Finalized"
	eventAbandoned = "FinalizerAbandoned"
	eventAction    = "Reconcile"
	// maxNote is the API's limit for the note of an Event, in bytes.
	maxNote = 1024
)

// announce makes one Kubernetes Event if the outcome differs from the one before.
func (r *Reconciler) announce(a *attempt) {
	c := a.conclusion
	switch {
	case c.canceled:
		r.event(a, corev1.EventTypeWarning, string(content.ReasonCanceled), c.traced("The run: "+c.Outcome.Message))
	case c.Outcome.Verdict == content.Canceled:
		return
	case c.finalizing && c.Outcome.Verdict == content.Succeeded:
		r.event(a, corev1.EventTypeNormal, eventFinalized, c.traced("The finalizer's run succeeded"))
	case c.Outcome.Verdict == content.Succeeded && c.before.Verdict != content.Succeeded:
		r.event(a, corev1.EventTypeNormal, eventSucceeded, c.traced("The last reconciliation succeeded"))
	case c.Outcome.Verdict == content.Failed && c.Outcome != c.before:
		r.event(a, corev1.EventTypeWarning, string(c.Outcome.Reason), c.traced(c.Outcome.Message))
	}
}

func (r *Reconciler) event(a *attempt, kind, reason, note string) {
	r.Recorder.Eventf(a.cr, nil, kind, reason, eventAction, "%s", cutNote(note, maxNote))
}

// traced returns the note with the ID of the run's trace, if there is one.
func (c *conclusion) traced(note string) string {
	if c.traceID == "" {
		return note
	}
	end := " (trace " + c.traceID + ")"
	return cutNote(note, maxNote-len(end)) + end
}

// cutNote cuts at a rune's boundary, to at most so many bytes.
func cutNote(note string, most int) string {
	const mark = "…"
	if len(note) <= most {
		return note
	}
	return strings.ToValidUTF8(note[:most-len(mark)], "") + mark
}

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

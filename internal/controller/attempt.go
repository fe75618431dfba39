package controller

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// attempt is one pass over one CR.
type attempt struct {
	request reconcile.Request
	// entry has the state of the CR, which is the attempt's own until its end.
	*entry
	look

	// release gives the slot of the run back; nil while there is none.
	release func()
	// conclusion is the report of the attempt; nil while there is nothing to report.
	conclusion *conclusion
	// healthNext is when the health of children changes by time; the zero time is never.
	healthNext time.Time
	// readies are the conditions Ready that the status had, and that the manager has written: content that
	// sends the whole list of conditions sends them along.
	readies Readies
}

// look is the CR as an attempt reads it, and the decision that follows. An attempt that has to wait
// for a slot looks again.
type look struct {
	// readCtx ends when an event of the CR comes after it was read.
	readCtx context.Context            //nolint:containedctx // It belongs to this attempt alone.
	cr      *unstructured.Unstructured // as it was read; later reads do not change it
	version version
	// dirty is why the name is dirty; "" if it is not.
	dirty string
	// writer is the run that wrote the news of this version.
	writer writerOf
	// before is the outcome before this attempt.
	before content.Outcome
	// wasThere is true if no status says whether the CR ran before this manager, and the CR is older
	// than its controller.
	wasThere bool
	proof    proof
	decision
	// finalizing is true if the content of the finalizer is to run.
	finalizing bool

	// The next fields are set if content is to run: work, or the reason why there is none for this
	// version.
	work    content.Work
	refusal *content.Outcome
	// username is the user as which the run uses the API; "" is the manager.
	username string
	period   time.Duration // between two runs; 0 is none
	// digest is that of Reconciler.digestWith when the run began.
	digest string
}

// version is the part of a CR whose change makes content run again.
type version struct {
	uid        types.UID
	generation int64
	// content is the digest of a CR whose kind has no generations, else "".
	content string
	// annotations is the digest of the annotations that trigger runs.
	annotations string
	// requested are the values of the annotations that request a run: see requestsOf.
	requested string
	deleting  bool
	// abandoned is true if the CR is to go without its finalizer.
	abandoned bool
}

// sameSpec reports whether the versions differ in annotations and deletion at most.
func (v version) sameSpec(other version) bool {
	v.annotations, v.requested, v.deleting, v.abandoned = other.annotations, other.requested, other.deleting, other.abandoned
	return v == other
}

// requestsAnew reports whether the version has a request that another one has not.
func (v version) requestsAnew(other version) bool {
	return len(newRequests(v.requested, other.requested)) > 0
}

// versionOf returns the version of a CR, or of its stripped copy in the cache.
func versionOf(watch *watches.Watch, cr *unstructured.Unstructured) version {
	v := version{
		uid: cr.GetUID(), generation: cr.GetGeneration(),
		annotations: annotationsDigest(triggerAnnotations(watch, cr)), deleting: cr.GetDeletionTimestamp() != nil,
		requested: requestsOf(watch, cr), abandoned: abandoned(watch, cr),
	}
	if v.generation != 0 {
		return v
	}
	var stripped bool
	if v.content, stripped = cr.Object[digestField].(string); !stripped {
		v.content, _ = contentDigest(cr) // A CR that came as JSON can be JSON again.
	}
	return v
}

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

// freeSlot gives the slot of the run back, if there is one.
func (a *attempt) freeSlot() {
	if a.release != nil {
		a.release()
		a.release = nil
	}
}

// setVersion makes the attempt's version the one that content runs for or ran for.
func (a *attempt) setVersion() {
	if !a.state.version.sameSpec(a.version) && !a.writer.own {
		a.state.failures, a.state.repeats = 0, 0
	}
	a.state.version = a.version
	a.mailbox.setRan(a.version)
}

// removesFinalizer reports whether the attempt ends with the removal of the finalizer.
func (a *attempt) removesFinalizer() bool {
	c := a.conclusion
	return a.step == abandon || c != nil && c.finalizing && c.Outcome.Verdict == content.Succeeded
}

// priority returns the priority of the CR among those that wait for a slot.
func (a *attempt) priority() slots.Priority {
	switch {
	case a.work != nil && a.work.Resumable():
		return slots.Live
	case a.version.deleting:
		return slots.Urgent
	case a.dirty != "":
		return slots.Changed
	case a.state.last != nil && a.state.version == a.version:
		return slots.Normal // Whatever the status says: the manager may not write it.
	default:
		return priorityOf(a.cr)
	}
}

// requested reports whether somebody has asked for the run, and no successful run has answered yet.
func (a *attempt) requested() bool {
	return a.asks() || !a.finalizing && !a.writer.own && a.state.failing() && a.state.last.requested
}

// asks reports whether somebody has asked for a run since the last one.
func (a *attempt) asks() bool {
	if a.finalizing || a.writer.own {
		return false
	}
	shown := status.Request(a.cr)
	return slices.ContainsFunc(newRequests(a.version.requested, a.state.answered), func(request string) bool { return request != shown })
}

// seenBefore reports whether this manager already reconciled the CR with the same spec.
func (a *attempt) seenBefore() bool {
	return a.state.last != nil && a.state.version.sameSpec(a.version)
}

// outcomeBefore returns the outcome of the last run. The status may have none, or that of an
// earlier run, so the state goes first.
func outcomeBefore(st *state, cr *unstructured.Unstructured) content.Outcome {
	if st.last != nil {
		return st.last.Outcome
	}
	return status.Last(cr)
}

// conclude sets the conclusion of the attempt and stores it in the CR's state.
func (r *Reconciler) conclude(a *attempt, c conclusion) {
	st, now := &a.state, r.Clock.Now()
	c.version, c.finalizing, c.before, c.requested = a.version, a.finalizing, a.before, a.requested()
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

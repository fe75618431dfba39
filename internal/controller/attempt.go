package controller

import (
	"context"
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
	cr      *unstructured.Unstructured // as it was read; later reads do not change it
	version version
	// state is the CR's as the attempt found it.
	state state
	// writer is whose run wrote what is new in the version.
	writer writerOf
	decision

	period time.Duration // between two runs; 0 is none
	work   content.Work
	// refusal is why nothing may run for this version; nil for all other steps than refuse.
	refusal *content.Outcome
	// wasThere is true if no status says whether the CR ran before this manager, and the CR is older
	// than its controller.
	wasThere bool
	// digest is that of Reconciler.digestWith when the run began.
	digest string
	// release gives the slot of a run back, and may be called more than once.
	release func()
	// readCtx ends when an event of the CR comes after it was read.
	readCtx context.Context //nolint:containedctx // It belongs to this attempt alone.
	// conclusion is what the attempt reports; nil while there is nothing to report.
	conclusion *conclusion
}

// version is the part of a CR whose change makes content run again.
type version struct {
	uid        types.UID
	generation int64
	// content is the digest of a CR whose kind has no generations, else "".
	content string
	// annotations is the digest of the annotations that trigger runs.
	annotations string
	// requested is the value of the annotation that requests a run.
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
	return v.requested != "" && v.requested != other.requested
}

// versionOf returns the version of a CR, or of its reduced copy in the cache.
func versionOf(watch *watches.Watch, cr *unstructured.Unstructured) version {
	v := version{
		uid: cr.GetUID(), generation: cr.GetGeneration(),
		annotations: annotationsDigest(triggerAnnotations(watch, cr)), deleting: cr.GetDeletionTimestamp() != nil,
		requested: cr.GetAnnotations()[watch.AnnotationPrefix()+requestedSuffix], abandoned: abandoned(watch, cr),
	}
	if v.generation != 0 {
		return v
	}
	var reduced bool
	if v.content, reduced = cr.Object[digestField].(string); !reduced {
		v.content, _ = contentDigest(cr) // What came as JSON can be JSON again.
	}
	return v
}

// conclusion is what one attempt reports of a run, or of the refusal to run. The next
// attempt compares with it, and writes it to the API server if this one could not.
type conclusion struct {
	content.Result

	version version
	// before is the outcome before this one, which an Event has announced.
	before     content.Outcome
	finalizing bool
	// refused is true when nothing was run.
	refused bool
	// period is the pause until the next run after a success; 0 is none.
	period time.Duration
	// digest is that of all that a successful run depended on.
	digest string
	// ended is when the run ended; zero if nothing has run. next is when content runs again
	// although nothing changes, if that is not after the period; zero if not so.
	ended, next time.Time
	// refusals counts how often the API server has refused to store the conclusion.
	refusals int
}

func (a *attempt) finalizing() bool { return a.step == finalize }

// removesFinalizer reports whether the attempt ends with the removal of the finalizer.
func (a *attempt) removesFinalizer() bool {
	c := a.conclusion
	return a.step == abandon || c != nil && c.finalizing && c.Outcome.Verdict == content.Succeeded
}

// priority returns the priority of the CR among those that wait for a slot.
func (a *attempt) priority() slots.Priority {
	switch {
	case a.version.deleting:
		return slots.Urgent
	case a.state.dirty != "":
		return slots.Changed
	case a.state.last != nil && a.state.version == a.version:
		return slots.Normal // Whatever the status says: the manager may not write it.
	default:
		return priorityOf(a.cr)
	}
}

// seenBefore reports whether this manager already reconciled the CR with the same spec.
func (a *attempt) seenBefore() bool {
	return a.state.last != nil && a.state.version.sameSpec(a.version)
}

// lastOutcome returns the outcome before this attempt. The status may have none, or that of an
// earlier run, so the state goes first.
func (a *attempt) lastOutcome() content.Outcome {
	if a.state.last != nil {
		return a.state.last.Outcome
	}
	return status.Last(a.cr)
}

// conclude sets the conclusion of the attempt and stores it in the CR's state.
func (r *Reconciler) conclude(a *attempt, c conclusion) {
	c.version, c.finalizing = a.version, a.finalizing()
	c.before = a.lastOutcome()
	failures := 0
	if a.state.version.sameSpec(a.version) || a.writer.own {
		failures = a.state.failures
	}
	switch {
	case c.refused: // Nothing has run.
	case c.Outcome.Verdict == content.Failed:
		failures++
	default:
		failures = 0
	}
	if c.Outcome.Verdict == content.Failed || c.RequeueAfter > 0 {
		if after := requeueAfter(&c, backoffAfter(failures, r.Defaults.MaxBackoff)); after > 0 {
			c.next = r.Clock.Now().Add(after)
		}
	}
	a.conclusion = &c
	r.states.update(a.request.NamespacedName, func(st *state) {
		st.version, st.last, st.unwritten, st.failures, st.due = a.version, &c, true, failures, time.Time{}
		if c.refused {
			st.dirty, st.heldFor = "", version{} // Only a change of the CR can make a run of it.
			return
		}
		st.brake.end(r.Clock.Now(), r.Defaults.MaxBackoff)
	})
}

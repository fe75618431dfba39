package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/jobevent"
	"github.com/ensign-operator/ensign/internal/status"
)

// due is what brings a CR back that nothing else triggers, and when.
type due struct {
	why string
	at  time.Time
}

// dueAfter returns what brings the CR back at the time that requeueAfter gave.
func dueAfter(v *verdict, at time.Time) due {
	switch {
	case v.outcome.Verdict != jobevent.Succeeded:
		return due{}
	case v.summary.Requeue > 0:
		return due{"requeue_after", at}
	default:
		return due{"period", at}
	}
}

// circumstances are what triggerOf cannot see in the CR alone.
type circumstances struct {
	finalizing bool
	// again is true where this manager has reported the CR as it stands before, and
	// met where it has reported the CR at all.
	again, met bool
	// related is what has changed of the CR's related objects.
	related string
	// annotated is true where annotations that trigger have changed since the last run.
	annotated bool
	// digest stands for all that the run depends on, "" where that is not known.
	digest string
	due    due
	now    time.Time
}

// trigger says for the log why a run starts. It notes what the next run's is told from.
func (r *Reconciler) trigger(a *attempt) string {
	annotations := digestOfAnnotations("", triggering(&r.Watch, a.cr))
	before := a.memory.annotations
	a.memory.annotations = annotations
	return triggerOf(a.cr, circumstances{
		finalizing: a.finalizing(), again: a.again(), met: a.memory.met, related: a.related,
		annotated: before != "" && before != annotations, digest: a.digest, due: a.memory.due, now: r.Clock.Now(),
	})
}

// differs reports whether the run depends on something else than what has this digest.
func (c circumstances) differs(digest string) bool {
	return digest != "" && c.digest != "" && digest != c.digest
}

// triggerOf says why a run starts, as far as the CR's status and the circumstances
// tell.
func triggerOf(cr *unstructured.Unstructured, c circumstances) string {
	conditions, _, _ := unstructured.NestedSlice(cr.Object, "status", "conditions")
	observed, _, _ := unstructured.NestedInt64(cr.Object, "status", "observedGeneration")
	switch {
	case c.finalizing:
		return "deleted"
	case len(conditions) == 0 && !c.again:
		return "created"
	case observed != cr.GetGeneration() && !c.again:
		return "changed"
	case c.related != "":
		return "related: " + c.related
	case c.annotated:
		return "annotation"
	case status.Last(cr).Verdict == jobevent.Failed:
		return "retry"
	case !c.met && c.differs(status.Digest(cr)):
		return "content changed"
	case !c.met:
		return "restart"
	case c.due.why != "" && !c.now.Before(c.due.at):
		return c.due.why
	default:
		return "again"
	}
}

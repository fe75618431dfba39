package controller

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/pkg/content"
)

// The reasons for which a CR is dirty, as the log shows them. The name of an object follows
// causeRelated, that of a CR causeRun.
const (
	causeOwnRun   = "changed by its own run"
	causeRun      = "changed by a run of "
	causeRelated  = "related: "
	causeResumed  = "resumed"
	causeSelected = "selected"
)

// cause returns why the attempt's run starts, for the log.
func (a *attempt) cause(now time.Time) string {
	switch {
	case a.finalizing:
		return "deleted"
	case a.state.isNew():
		return a.firstCause()
	default:
		return a.laterCause(now)
	}
}

// firstCause returns why the first run of the CR under this manager starts.
func (a *attempt) firstCause() string {
	conditions, _, _ := unstructured.NestedSlice(a.cr.Object, "status", "conditions")
	observed, _, _ := unstructured.NestedInt64(a.cr.Object, "status", "observedGeneration")
	switch {
	case len(conditions) == 0 && !a.wasThere:
		return "created"
	case len(conditions) == 0:
		return "restart"
	case observed != a.version.generation:
		return cmp.Or(a.writer.cause(), "changed")
	case a.dirty != "":
		return a.dirty
	case a.before.Verdict == content.Failed:
		return "retry"
	case differ(status.Digest(a.cr), a.digest):
		return "content changed"
	default:
		return "restart"
	}
}

// laterCause returns why a further run of the CR under this manager starts.
func (a *attempt) laterCause(now time.Time) string {
	last := a.state.last
	switch {
	case !a.state.version.sameSpec(a.version):
		return cmp.Or(a.writer.cause(), "changed")
	case a.dirty != "":
		return a.dirty
	case last == nil:
		return "again"
	case a.state.version.annotations != a.version.annotations:
		return cmp.Or(a.writer.cause(), "annotation")
	case last.Outcome.Verdict == content.Failed:
		return "retry"
	default:
		return a.state.rerunCause(now)
	}
}

// rerunCause returns why content runs again although nothing changed since its success.
func (st *state) rerunCause(now time.Time) string {
	switch {
	case st.due.IsZero() || now.Before(st.due):
		return "again"
	case st.last.RequeueAfter > 0:
		return "requeue_after"
	default:
		return "period"
	}
}

// differ reports whether two digests are known and different; "" is unknown.
func differ(before, after string) bool { return before != "" && after != "" && before != after }

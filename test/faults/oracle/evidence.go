package oracle

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/faults/audit"
	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/faults/stub"
	"github.com/ensign-operator/ensign/test/harness"
)

// Evidence is what a trial found.
type Evidence struct {
	Plan plan.Plan
	// Directory holds the log of the manager and everything else.
	Directory string
	// UIDs are those of the resources of the name, in their order.
	UIDs []string
	// Final is the resource at the end, nil if there is none.
	Final *unstructured.Unstructured
	// Unsettled says what was missing when the trial's time limit had passed.
	Unsettled []string
	// Took is the time from the end of the fault until nothing changed any more.
	Took time.Duration
	// Requests are all that the managers sent, Runs all that the runs did.
	Requests []apiproxy.Request
	Runs     []stub.Record
	// Events are type and reason of the Kubernetes Events, each as often as it was told.
	Events []string
	// Audited are the writes of the managers that the API server has accepted, by its
	// own audit log.
	Audited []audit.Write
	// Kills is how many managers were killed, Touched how often the user changed
	// the resource beside the operation.
	Kills, Touched int
	// Foreign is what another writer left.
	Foreign Foreign
	// Left is what should not be there.
	Left []string
	// Misdeeds are what the manager's process or a run was seen to do and must not.
	Misdeeds []Violation
}

// Foreign is what is in a resource and belongs to another writer.
type Foreign struct {
	Condition map[string]any
	Finalizer string
}

// Violation is a broken promise.
type Violation struct {
	// Invariant is I1 to I10, "end" when the end is not that without the fault,
	// "runs" when there were more than the fault explains, or "record" when the
	// journal of requests is not what the API server has seen.
	Invariant string
	Text      string
}

func (v Violation) String() string { return v.Invariant + ": " + v.Text }

// patched is a write of the manager to a resource, as the API server left it.
type patched struct {
	request apiproxy.Request
	object  *unstructured.Unstructured
}

// patches are the manager's writes to resources that were applied.
func (e Evidence) patches() []patched {
	var found []patched
	for _, r := range e.Requests {
		if r.Verb != "patch" || !r.Applied() {
			continue
		}
		object := &unstructured.Unstructured{}
		if object.UnmarshalJSON(r.Answer) == nil && object.GetUID() != "" {
			found = append(found, patched{r, object})
		}
	}
	return found
}

// steps counts the writes but for those that show the task at work, of which there is one
// for each ten seconds that a run takes.
func (e Evidence) steps() int {
	n := 0
	for _, p := range e.patches() {
		if !strings.Contains(harness.ConditionOf(p.object, "Running").Message, ": task ") {
			n++
		}
	}
	return n
}

// number reads an integer; -1 is none.
func number(value any) int64 {
	if n, ok := value.(int64); ok {
		return n
	}
	return -1
}

// Unreported says what keeps a resource's present generation from being reported
// as successful.
func Unreported(cr *unstructured.Unstructured) []error {
	var missing []error
	status, _, _ := unstructured.NestedMap(cr.Object, "status")
	if observed := number(status["observedGeneration"]); observed != cr.GetGeneration() {
		missing = append(missing, fmt.Errorf("generation %d is there, %d is reported", cr.GetGeneration(), observed))
	}
	for _, want := range []struct{ kind, status, reason string }{{"Running", "True", "Successful"}, {"Successful", "True", "Successful"}, {"Failure", "False", "Successful"}} {
		c := harness.ConditionOf(cr, want.kind)
		if c.Status != want.status || c.Reason != want.reason || c.Generation != cr.GetGeneration() {
			missing = append(missing, fmt.Errorf("condition %s is %+v, want %s for %s", want.kind, c, want.status, want.reason))
		}
	}
	return missing
}

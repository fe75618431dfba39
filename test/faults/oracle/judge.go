// Package oracle judges the evidence of a fault plan: does what came out equal
// what comes out without the fault, and did every invariant hold on the way?
//
// The evidence is records that were kept independently. Runs have a journal of what
// they did, the API proxy one of what the manager asked for, and the API server an
// audit log of what it accepted. The rest was found in the file system and the process
// table. The package is pure.
package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/test/faults/audit"
	"github.com/ensign-operator/ensign/test/faults/plan"
)

// Judge compares the evidence with that of the same operation without a fault,
// and checks every invariant.
func Judge(e, baseline Evidence) []Violation {
	j := &judge{Evidence: e, baseline: baseline}
	j.end()
	j.runs()
	j.backoff()
	j.throttle()
	j.success()
	j.finalizer()
	j.status()
	j.writes()
	j.nothingForNothing()
	j.record()
	for _, text := range e.Unsettled {
		j.add("I5", "not settled in time: %s", text)
	}
	for _, text := range e.Left {
		j.add(invariantOf(text), "left: %s", text)
	}
	return append(j.found, e.Misdeeds...)
}

// invariantOf tells secrets from the rest.
func invariantOf(left string) string {
	if strings.Contains(left, "token") {
		return "I7"
	}
	return "I6"
}

type judge struct {
	Evidence

	baseline Evidence
	found    []Violation
}

func (j *judge) add(invariant, format string, args ...any) {
	j.found = append(j.found, Violation{invariant, fmt.Sprintf(format, args...)})
}

// end compares the resource at the end with that without the fault.
func (j *judge) end() {
	if gone := j.Final == nil; gone != j.Plan.Operation.Course().Gone {
		j.add("end", "the resource is gone: %v, want %v", gone, !gone)
		return
	}
	if j.Final == nil || j.baseline.Final == nil {
		return
	}
	if name := j.Foreign.Finalizer; name != "" && !slices.Contains(j.Final.GetFinalizers(), name) {
		j.add("end", "another writer's finalizer is gone: %v", j.Final.GetFinalizers())
	}
	want, got := normal(j.baseline.Final), normal(j.Final)
	if c, _ := got.Conditions["Foreign"].(map[string]any); !cmp.Equal(c, j.Foreign.Condition) {
		j.add("end", "another writer's condition became %v", c)
	}
	delete(got.Conditions, "Foreign")
	if diff := cmp.Diff(want, got); diff != "" {
		j.add("end", "the resource is not as without the fault (-want +got):\n%s", diff)
	}
}

// outcome is what of a resource does not differ from one time to the next.
type outcome struct {
	Finalizers         []string
	Deleting           bool
	Status, Conditions map[string]any
}

// normal leaves another writer's finalizer out, and its condition as it is.
func normal(cr *unstructured.Unstructured) outcome {
	cr = cr.DeepCopy()
	generation := cr.GetGeneration()
	finalizers := slices.DeleteFunc(cr.GetFinalizers(), func(name string) bool { return strings.HasSuffix(name, "/other") })
	status, _, _ := unstructured.NestedMap(cr.Object, "status")
	conditions, _, _ := unstructured.NestedSlice(cr.Object, "status", "conditions")
	kept := map[string]any{}
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		kept[fmt.Sprint(c["type"])] = c
		if c["type"] == "Foreign" {
			continue
		}
		delete(c, "lastTransitionTime")
		c["observedGeneration"] = number(c["observedGeneration"]) - generation
		if result, ok := c["ansibleResult"].(map[string]any); ok {
			delete(result, "completion")
		}
	}
	if digest, _ := status["contentDigest"].(string); digest != "" {
		status["contentDigest"] = "of a project that lies somewhere else each time"
	}
	delete(status, "contentRun") // It has times.
	delete(status, "conditions")
	status["observedGeneration"] = number(status["observedGeneration"]) - generation
	return outcome{finalizers, cr.GetDeletionTimestamp() != nil, status, kept}
}

// record compares the API proxy's journal with the API server's own. What was on
// its way when a connection broke is in the latter alone.
func (j *judge) record() {
	count := map[audit.Write]int{}
	for _, w := range j.Audited {
		w.Name = ""
		count[w]++
	}
	for _, r := range j.Requests {
		if r.Applied() && r.Namespace != "" {
			count[audit.Write{Verb: r.Verb, Resource: r.Resource, Subresource: r.Subresource}]--
		}
	}
	broken := j.Kills > 0 || j.Plan.Fault == plan.Away
	for w, more := range count {
		if more < 0 || more > 0 && !broken {
			j.add("record", "of the writes %v the API server accepted %d more than the journal has", w, more)
		}
	}
}

// nothingForNothing judges what the others are compared with.
func (j *judge) nothingForNothing() {
	if j.Plan.Fault != "" {
		return
	}
	want := j.Plan.Operation.Course()
	var runs [][2]int
	for i := range j.UIDs {
		runs = append(runs, [2]int{j.started(i, false), j.started(i, true)})
	}
	if !slices.Equal(runs, want.Runs) {
		j.add("runs", "without a fault there were %v runs (of content and finalizer, by resource), want %v", runs, want.Runs)
	}
	if got := j.steps(); got > want.Steps {
		j.add("I9", "without a fault there were %d writes, want at most %d", got, want.Steps)
	}
	if got := len(j.Events); got != want.Events {
		j.add("I9", "without a fault there were %d Events, want %d: %v", got, want.Events, j.Events)
	}
}

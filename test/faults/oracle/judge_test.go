package oracle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/faults/audit"
	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/faults/stub"
)

const finalizer = "faults.ensign.io/finalizer"

// story makes evidence step by step, a second apart.
type story struct {
	Evidence

	now     time.Time
	version int
}

func tell(p plan.Plan) *story {
	evidence := Evidence{Plan: p, UIDs: []string{"u"}, Events: []string{"Normal Succeeded"}}
	return &story{Evidence: evidence, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func (s *story) tick() time.Time {
	s.now = s.now.Add(time.Second)
	return s.now
}

// cr is the resource with the successful generation reported.
func cr(reported, generation int64, finalizers ...string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}, "kind": "Play", "apiVersion": "faults.ensign.io/v1"}}
	object.SetUID("u")
	object.SetGeneration(generation)
	object.SetFinalizers(finalizers)
	if reported == 0 {
		return object
	}
	condition := func(kind, status string) any {
		return map[string]any{"type": kind, "status": status, "reason": "Successful", "observedGeneration": reported, "lastTransitionTime": time.Now().String()}
	}
	object.Object["status"] = map[string]any{
		"observedGeneration": reported,
		"conditions":         []any{condition("Running", "True"), condition("Successful", "True"), condition("Failure", "False")},
	}
	return object
}

// patch is an applied write of the manager.
func (s *story) patch(subresource string, object *unstructured.Unstructured) *story {
	s.version++
	object.SetResourceVersion(fmt.Sprint(s.version))
	answer, err := object.MarshalJSON()
	if err != nil {
		panic(err)
	}
	at := s.tick()
	s.Requests = append(s.Requests, apiproxy.Request{
		Seq: s.version, Verb: "patch", Namespace: "ns", Resource: "plays", Subresource: subresource,
		Upstream: 200, Answer: answer, Arrived: at, Answered: at,
	})
	s.Audited = append(s.Audited, audit.Write{Verb: "patch", Resource: "plays", Subresource: subresource, Name: "n"})
	return s
}

// report is a write of the status.
func (s *story) report(reported, generation int64) *story {
	return s.patch("status", cr(reported, generation, finalizer))
}

// run is a run of the generation.
func (s *story) run(generation int64, succeeded, finalizer bool) *story {
	for _, what := range []string{stub.Started, stub.Ended} {
		s.Runs = append(s.Runs, stub.Record{
			Subject: stub.Subject{UID: "u", Generation: generation, Spec: `{"size":1}`},
			What:    what, Run: "r", Succeeded: succeeded, Finalizer: finalizer, Time: s.tick(),
		})
	}
	return s
}

func (s *story) final(object *unstructured.Unstructured) *story {
	s.Final = object
	return s
}

// with changes whatever there is no step for.
func (s *story) with(change func(*story)) *story {
	change(s)
	return s
}

func killed(s *story) { s.Kills = 1 }

func toldAgain(s *story) { s.Events = append(s.Events, s.Events[0]) }

// creation is a story in which the finalizer is there and nothing else has happened.
func creation(f plan.Fault) *story {
	return tell(plan.Plan{Operation: plan.Create, Point: plan.StatusResult, Fault: f}).patch("", cr(0, 1, finalizer)).final(cr(1, 1, finalizer))
}

// created is the story of a creation in which nothing is wrong.
func created(f plan.Fault) *story { return creation(f).run(1, true, false).report(1, 1) }

// deletion is the story of a resource that is about to be deleted.
func deletion() *story {
	s := tell(plan.Plan{Operation: plan.Delete, Point: plan.FinalizerRemove, Fault: plan.Lost})
	return s.patch("", cr(0, 1, finalizer)).run(1, true, false).report(1, 1)
}

func TestViolationsAreSeen(t *testing.T) {
	for name, test := range map[string]struct {
		story *story
		want  []string
	}{
		"nothing is wrong": {created(plan.Lost), nil},
		"two live runs of one resource": {created(plan.Lost).with(func(s *story) {
			s.Runs = append(s.Runs, stub.Record{What: stub.Overlaps})
		}), []string{"I1"}},
		"a run more than without the fault":              {created(plan.Lost).run(1, true, false), []string{"runs"}},
		"a run more, after a crash that lost its result": {created(plan.CrashBefore).run(1, true, false).with(killed), nil},
		"a run more, after a crash that lost nothing":    {created(plan.CrashAfter).run(1, true, false).with(killed), []string{"runs"}},
		"a long wait after the first failure": {creation("").run(1, false, false).with(func(s *story) {
			s.now = s.now.Add(lastPause)
		}).run(1, true, false).report(1, 1), []string{"I5", "runs"}},
		"on a machine that is busy": {creation("").run(1, false, false).with(func(s *story) {
			s.now = s.now.Add(lastPause - 2*time.Second)
		}).run(1, true, false).report(1, 1), []string{"runs"}},
		"a failing generation runs again before its back-off is over": {creation("").run(1, false, false).run(1, false, false).run(1, true, false).report(1, 1), []string{"I11", "runs"}},
		"success that no run came to":                                 {creation("").run(1, false, false).report(1, 1), []string{"I2"}},
		"success before the run's end":                                {creation("").report(1, 1).run(1, true, false), []string{"I2"}},
		"the run was not about the spec as it is": {created(plan.Lost).with(func(s *story) {
			s.Final.Object["spec"] = map[string]any{"size": int64(2)}
		}), []string{"I2"}},
		"a deletion as it should be":                    {deletion().run(1, true, true).patch("", cr(1, 2)), nil},
		"the finalizer goes after a failure":            {deletion().run(1, false, true).patch("", cr(1, 2)), []string{"I3"}},
		"the finalizer goes before its run's end":       {deletion().patch("", cr(1, 2)).run(1, true, true), []string{"I3"}},
		"the resource goes without its finalizer's run": {deletion(), []string{"I3"}},
		"a run before the finalizer is there": {tell(plan.Plan{Operation: plan.Create}).run(1, true, false).
			patch("", cr(0, 1, finalizer)).report(1, 1).final(cr(1, 1, finalizer)), []string{"I3"}},
		"an older generation is reported": {created(plan.Lost).run(2, true, false).report(2, 2).report(1, 2), []string{"I4", "I9", "runs"}},
		"a generation that is not there":  {created(plan.Lost).run(2, true, false).report(2, 1), []string{"I4", "I9", "runs"}},
		"it does not settle":              {created(plan.Lost).with(func(s *story) { s.Unsettled = []string{"why"} }), []string{"I5"}},
		"something is left":               {created(plan.Lost).with(func(s *story) { s.Left = []string{"process 1"} }), []string{"I6"}},
		"a secret is left":                {created(plan.Lost).with(func(s *story) { s.Left = []string{"a token of a run is in /x"} }), []string{"I7"}},
		"a write that changes nothing": {created(plan.CrashBefore).with(func(s *story) {
			s.Kills = 1
			s.version--
		}).report(1, 1), []string{"I9"}},
		"a write more than without the fault":  {created(plan.Lost).report(1, 1), []string{"I9"}},
		"an Event more than without the fault": {created(plan.Lost).with(toldAgain), []string{"I9"}},
		"a manager that ends by itself":        {created(plan.Lost).with(func(s *story) { s.Misdeeds = []Violation{{"I10", "it ended"}} }), []string{"I10"}},
		"a write that went past the journal": {created(plan.Lost).with(func(s *story) {
			s.Audited = append(s.Audited, s.Audited[0])
		}), []string{"record"}},
		"a write that the API server does not know": {created(plan.Lost).with(func(s *story) { s.Audited = s.Audited[1:] }), []string{"record"}},
		"a write that was on its way when the manager was killed": {created(plan.CrashBefore).with(func(s *story) {
			s.Audited = append(s.Audited, s.Audited[0])
		}).with(killed), nil},
		"the end is another":   {created(plan.Lost).final(cr(1, 1)), []string{"end"}},
		"there is no resource": {created(plan.Lost).final(nil), []string{"I3", "end"}},
		"another writer's condition is gone": {created(plan.Race).with(func(s *story) {
			s.Foreign.Condition = map[string]any{"type": "Foreign"}
		}), []string{"end"}},
		"another writer's finalizer is gone": {created(plan.Race).with(func(s *story) { s.Foreign.Finalizer = "x/other" }), []string{"end"}},
		"another writer's finalizer is there": {created(plan.Race).final(cr(1, 1, "x/other", finalizer)).with(func(s *story) {
			s.Foreign.Finalizer = "x/other"
		}), nil},
		// What others are compared with is judged by itself.
		"without a fault, nothing is wrong":   {created(""), nil},
		"without a fault, it ran twice":       {created("").run(1, true, false), []string{"runs"}},
		"without a fault, its finalizer ran":  {created("").run(1, true, true), []string{"runs"}},
		"without a fault, it is written more": {created("").report(1, 1).report(1, 1), []string{"I9"}},
		"without a fault, an Event too many":  {created("").with(toldAgain), []string{"I9"}},
		"without a fault, no Event":           {created("").with(func(s *story) { s.Events = nil }), []string{"I9"}},
	} {
		t.Run(name, func(t *testing.T) {
			baseline := created("").Evidence
			switch {
			case test.story.Plan.Fault == "":
				baseline = test.story.Evidence
			case test.story.Plan.Operation == plan.Delete:
				baseline = deletion().run(1, true, true).patch("", cr(1, 2)).Evidence
			}
			found := Judge(test.story.Evidence, baseline)
			var got []string
			for _, v := range found {
				got = append(got, v.Invariant)
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, slices.Compact(got)); diff != "" {
				t.Errorf("(-want +got):\n%s%v", diff, found)
			}
		})
	}
}

package oracle

import (
	"encoding/json"
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
	t        *testing.T
	evidence Evidence
	now      time.Time
	version  int
}

func tell(t *testing.T, p plan.Plan) *story {
	t.Helper()
	events := []Event{{UID: "u", Type: "Normal", Reason: "Succeeded", Count: 1}}
	return &story{t: t, evidence: Evidence{Plan: p, Present: true, UIDs: []string{"u"}, Events: events}, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
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
	s.t.Helper()
	s.version++
	object.SetResourceVersion(fmt.Sprint(s.version))
	answer, err := object.MarshalJSON()
	if err != nil {
		s.t.Fatal(err)
	}
	at := s.tick()
	s.evidence.Requests = append(s.evidence.Requests, apiproxy.Request{
		Seq: s.version, Verb: "patch", Namespace: "ns", Resource: "plays", Subresource: subresource, Upstream: 200, Answer: answer, Arrived: at, Answered: at,
	})
	return s
}

// run is a run of the generation.
func (s *story) run(generation int64, succeeded, finalizer bool) *story {
	s.t.Helper()
	digest, err := stub.Digest(map[string]any{"size": int64(1)})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, what := range []string{stub.Started, stub.Ended} {
		s.evidence.Runs = append(s.evidence.Runs, stub.Record{
			Subject: stub.Subject{UID: "u", Generation: generation, Digest: digest},
			What:    what, Run: "r", Succeeded: succeeded, Finalizer: finalizer, Time: s.tick(),
		})
	}
	return s
}

func (s *story) final(object *unstructured.Unstructured) *story {
	s.evidence.Final = object
	return s
}

// created is the story of a creation in which nothing is wrong.
func created(t *testing.T, f plan.Fault) *story {
	t.Helper()
	s := tell(t, plan.Plan{Operation: plan.Create, Point: plan.StatusResult, Fault: f})
	s.patch("", cr(0, 1, finalizer)).run(1, true, false).patch("status", cr(1, 1, finalizer)).final(cr(1, 1, finalizer))
	return s
}

func deleted(t *testing.T) *story {
	t.Helper()
	s := tell(t, plan.Plan{Operation: plan.Delete, Point: plan.FinalizerRemove, Fault: plan.Lost})
	s.evidence.Present = false
	return s.patch("", cr(0, 1, finalizer)).run(1, true, false).patch("status", cr(1, 1, finalizer))
}

// audited is what an audit log says of the story.
func audited(s *story) []audit.Write {
	var found []audit.Write
	for _, r := range s.evidence.Requests {
		found = append(found, audit.Write{Verb: r.Verb, Resource: r.Resource, Subresource: r.Subresource, Name: "n"})
	}
	return found
}

func invariants(found []Violation) []string {
	var names []string
	for _, v := range found {
		names = append(names, v.Invariant)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestViolationsAreSeen(t *testing.T) {
	for name, test := range map[string]struct {
		story func(t *testing.T) *story
		want  []string
	}{
		"nothing is wrong": {func(t *testing.T) *story { return created(t, plan.Lost) }, nil},
		"two live runs of one resource": {func(t *testing.T) *story {
			s := created(t, plan.Lost)
			s.evidence.Runs = append(s.evidence.Runs, stub.Record{What: stub.Overlaps})
			return s
		}, []string{"I1"}},
		"a run more than without the fault": {func(t *testing.T) *story { return created(t, plan.Lost).run(1, true, false) }, []string{"runs"}},
		"a run more, after a crash that lost its result": {func(t *testing.T) *story {
			s := created(t, plan.CrashBefore).run(1, true, false)
			s.evidence.Kills = 1
			return s
		}, nil},
		"a run more, after a crash that lost nothing": {func(t *testing.T) *story {
			s := created(t, plan.CrashAfter).run(1, true, false)
			s.evidence.Kills = 1
			return s
		}, []string{"runs"}},
		"a long wait after the first failure": {func(t *testing.T) *story {
			s := tell(t, plan.Plan{Operation: plan.Create}).patch("", cr(0, 1, finalizer)).run(1, false, false)
			s.now = s.now.Add(time.Minute)
			return s.run(1, true, false).patch("status", cr(1, 1, finalizer)).final(cr(1, 1, finalizer))
		}, []string{"I5", "runs"}},
		"success that no run came to": {func(t *testing.T) *story {
			s := tell(t, plan.Plan{Operation: plan.Create})
			return s.patch("", cr(0, 1, finalizer)).run(1, false, false).patch("status", cr(1, 1, finalizer)).final(cr(1, 1, finalizer))
		}, []string{"I2"}},
		"success before the run's end": {func(t *testing.T) *story {
			s := tell(t, plan.Plan{Operation: plan.Create})
			return s.patch("", cr(0, 1, finalizer)).patch("status", cr(1, 1, finalizer)).run(1, true, false).final(cr(1, 1, finalizer))
		}, []string{"I2"}},
		"the run was not about the spec as it is": {func(t *testing.T) *story {
			s := created(t, plan.Lost)
			s.evidence.Final.Object["spec"] = map[string]any{"size": int64(2)}
			return s
		}, []string{"I2"}},
		"a deletion as it should be": {func(t *testing.T) *story {
			return deleted(t).run(1, true, true).patch("", cr(1, 2))
		}, nil},
		"the finalizer goes after a failure": {func(t *testing.T) *story {
			return deleted(t).run(1, false, true).patch("", cr(1, 2))
		}, []string{"I3"}},
		"the finalizer goes before its run's end": {func(t *testing.T) *story {
			return deleted(t).patch("", cr(1, 2)).run(1, true, true)
		}, []string{"I3"}},
		"the resource goes without its finalizer's run": {deleted, []string{"I3"}},
		"a run before the finalizer is there": {func(t *testing.T) *story {
			s := tell(t, plan.Plan{Operation: plan.Create})
			return s.run(1, true, false).patch("", cr(0, 1, finalizer)).patch("status", cr(1, 1, finalizer)).final(cr(1, 1, finalizer))
		}, []string{"I3"}},
		"an older generation is reported": {func(t *testing.T) *story {
			s := created(t, plan.Lost).run(2, true, false)
			return s.patch("status", cr(2, 2, finalizer)).patch("status", cr(1, 2, finalizer))
		}, []string{"I4", "I9", "runs"}},
		"a generation that is not there": {func(t *testing.T) *story {
			return created(t, plan.Lost).run(2, true, false).patch("status", cr(2, 1, finalizer))
		}, []string{"I4", "I9", "runs"}},
		"it does not settle": {func(t *testing.T) *story {
			s := created(t, plan.Lost)
			s.evidence.Unsettled = []string{"why"}
			return s
		}, []string{"I5"}},
		"something is left": {func(t *testing.T) *story {
			s := created(t, plan.Lost)
			s.evidence.Left = []string{"process 1"}
			return s
		}, []string{"I6"}},
		"a secret is left": {func(t *testing.T) *story {
			s := created(t, plan.Lost)
			s.evidence.Left = []string{"a token of a run is in /x"}
			return s
		}, []string{"I7"}},
		"a write that changes nothing": {func(t *testing.T) *story {
			s := created(t, plan.CrashBefore)
			s.evidence.Kills = 1
			s.version--
			return s.patch("status", cr(1, 1, finalizer))
		}, []string{"I9"}},
		"a write more than without the fault": {func(t *testing.T) *story { return created(t, plan.Lost).patch("status", cr(1, 1, finalizer)) }, []string{"I9"}},
		"an Event more than without the fault": {func(t *testing.T) *story {
			s := created(t, plan.Lost)
			s.evidence.Events[0].Count = 2
			return s
		}, []string{"I9"}},
		"a manager that ends by itself": {func(t *testing.T) *story {
			s := created(t, plan.Lost)
			s.evidence.Misdeeds = []Violation{{"I10", "it ended"}}
			return s
		}, []string{"I10"}},
		"a write that went past the journal": {func(t *testing.T) *story {
			s := created(t, plan.Lost)
			s.evidence.Audit, s.evidence.Audited = true, append(audited(s), audit.Write{Verb: "patch", Resource: "plays"})
			return s
		}, []string{"record"}},
		"a write that the API server does not know": {func(t *testing.T) *story {
			s := created(t, plan.Lost)
			s.evidence.Audit, s.evidence.Audited = true, audited(s)[1:]
			return s
		}, []string{"record"}},
		"a write that was on its way when the manager was killed": {func(t *testing.T) *story {
			s := created(t, plan.CrashBefore)
			s.evidence.Kills = 1
			s.evidence.Audit, s.evidence.Audited = true, append(audited(s), audit.Write{Verb: "patch", Resource: "plays"})
			return s
		}, nil},
		"the end is another":   {func(t *testing.T) *story { return created(t, plan.Lost).final(cr(1, 1)) }, []string{"end"}},
		"there is no resource": {func(t *testing.T) *story { return created(t, plan.Lost).final(nil) }, []string{"I3", "end"}},
		"another writer's condition is gone": {func(t *testing.T) *story {
			s := created(t, plan.Race)
			s.evidence.Foreign.Condition = map[string]any{"type": "Foreign"}
			return s
		}, []string{"end"}},
		"another writer's finalizer is gone": {func(t *testing.T) *story {
			s := created(t, plan.Race)
			s.evidence.Foreign.Finalizer = "x/other"
			return s
		}, []string{"end"}},
		"another writer's finalizer is there": {func(t *testing.T) *story {
			s := created(t, plan.Race).final(cr(1, 1, "x/other", finalizer))
			s.evidence.Foreign.Finalizer = "x/other"
			return s
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := test.story(t)
			baseline := created(t, "").evidence
			if s.evidence.Plan.Operation == plan.Delete {
				baseline = deleted(t).run(1, true, true).patch("", cr(1, 2)).evidence
			}
			found := Judge(s.evidence, baseline)
			if diff := cmp.Diff(test.want, invariants(found)); diff != "" {
				t.Errorf("(-want +got):\n%s%v", diff, found)
			}
		})
	}
}

func TestWhatOthersAreComparedWithIsJudgedByItself(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *story) *story
		want   []string
	}{
		"nothing is wrong":  {func(s *story) *story { return s }, nil},
		"it ran twice":      {func(s *story) *story { return s.run(1, true, false) }, []string{"runs"}},
		"its finalizer ran": {func(s *story) *story { return s.run(1, true, true) }, []string{"runs"}},
		"it was written more": {func(s *story) *story {
			return s.patch("status", cr(1, 1, finalizer)).patch("status", cr(1, 1, finalizer))
		}, []string{"I9"}},
		"an Event too many": {func(s *story) *story {
			s.evidence.Events[0].Count = 2
			return s
		}, []string{"I9"}},
		"no Event": {func(s *story) *story {
			s.evidence.Events = nil
			return s
		}, []string{"I9"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := test.change(created(t, "")).evidence
			if diff := cmp.Diff(test.want, invariants(Judge(e, e))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryOperationHasAnEnd(t *testing.T) {
	for _, p := range plan.Baselines() {
		if len(usualOf(p.Operation).runs) == 0 {
			t.Errorf("nobody knows what %s comes to", p.Operation)
		}
	}
}

func TestUnreported(t *testing.T) {
	for name, test := range map[string]struct {
		cr   *unstructured.Unstructured
		want int
	}{
		"all of it":           {cr(3, 3), 0},
		"an older generation": {cr(2, 3), 4},
		"nothing at all":      {cr(0, 1), 4},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Unreported(test.cr); len(got) != test.want {
				t.Errorf("got %v, want %d", got, test.want)
			}
		})
	}
	var fromJSON unstructured.Unstructured
	text, err := cr(3, 3).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &fromJSON.Object); err != nil {
		t.Fatal(err)
	}
	if number(fromJSON.Object["status"].(map[string]any)["observedGeneration"]) != 3 {
		t.Error("a number of plain JSON is not read")
	}
}

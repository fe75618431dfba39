package status_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/pkg/content"
)

// FuzzPatch applies reports to whatever stands in a status. What is not ours
// survives as it is, nothing is said of an older generation than what stands
// there, and once applied there is nothing more to write.
func FuzzPatch(f *testing.F) {
	f.Add(`{"observedGeneration":1,"conditions":[{"type":"Own","status":"True"}]}`, int64(2), uint8(1), "boom", 3)
	f.Add(`{"observedGeneration":1,"conditions":[{"type":"Running","status":"True","reason":"Running"}]}`, int64(2), uint8(66), "a\x1b[31m : \xff", 3)
	f.Fuzz(func(t *testing.T, statusText string, generation int64, which uint8, message string, count int) {
		obj := &unstructured.Unstructured{}
		if obj.UnmarshalJSON([]byte(`{"apiVersion":"g/v1","kind":"K","metadata":{"name":"n","uid":"u1","resourceVersion":"7","generation":5},"status":`+statusText+"}")) != nil ||
			string(obj.GetUID()) != "u1" || obj.GetGeneration() != 5 || strings.Contains(statusText, "metadata") {
			return // No JSON, or JSON that says more than a status.
		}
		report := fuzzReport(generation, which, message, count)
		before := obj.DeepCopy()
		after := apply(t, obj, report, later)
		if !reflect.DeepEqual(before.Object, obj.Object) {
			t.Error("the object that was read has changed")
		}
		if again := status.Patch(after, report, later.Add(1)); again != nil {
			t.Errorf("once applied, there is still to write: %+v", again)
		}
		old, reported, _ := unstructured.NestedInt64(before.Object, "status", "observedGeneration")
		if reported && generation < old && old <= 5 && !reflect.DeepEqual(after.Object, before.Object) {
			t.Errorf("generation %d was reported over %d", generation, old)
		}
		checkForeign(t, before, after)
		if reflect.DeepEqual(after.Object, before.Object) {
			return
		}
		if observed, _, _ := unstructured.NestedInt64(after.Object, "status", "observedGeneration"); observed != generation && which&64 == 0 {
			t.Errorf("observedGeneration is %d, reported was %d", observed, generation)
		}
		checkOurs(t, status.Patch(before, report, later))
	})
}

// fuzzReport is a report as the controller makes it: what is said comes from Judge.
func fuzzReport(generation int64, which uint8, message string, count int) status.Report {
	run := status.LastRun{Ended: first, Next: later, Version: content.Version{Name: message, Digest: "d"}}
	summary := jobevent.Summary{StatsSeen: which&16 != 0, OK: count, Failures: count, Completion: first}
	if which&64 != 0 {
		return []status.Report{
			status.Paused(generation), status.Unwritable(generation), status.Working(generation, status.Progress{Task: message, Since: first}), status.Working(generation, status.Progress{Place: message, Waits: message}), status.Paused(generation),
		}[which%4]
	}
	switch which % 4 {
	case 0:
		return status.Started(generation, which&32 != 0)
	case 1:
		return finished(generation, jobevent.DetermineOutcome(jobevent.ProcessExit{ExitCode: 2, Output: message}, summary), summary).WithRun(run)
	case 2:
		return finished(generation, canceled(), summary).WithRun(status.LastRun{})
	}
	return finished(generation, succeeded(), summary).WithRun(run)
}

// checkForeign compares what belongs to others, byte for byte.
func checkForeign(t *testing.T, before, after *unstructured.Unstructured) {
	t.Helper()
	old, _ := before.Object["status"].(map[string]any)
	now, _ := after.Object["status"].(map[string]any)
	for key, value := range old {
		if key != "conditions" && key != "observedGeneration" && key != "contentRun" && text(value) != text(now[key]) {
			t.Errorf("status.%s was %s and is %s", key, text(value), text(now[key]))
		}
	}
	list, isList := old["conditions"].([]any)
	if got := foreign(now["conditions"]); isList && text(foreign(list)) != text(got) {
		t.Errorf("conditions of others were %s and are %s", text(foreign(list)), text(got))
	}
	if text(before.Object["metadata"]) != text(after.Object["metadata"]) {
		t.Error("the metadata has changed")
	}
}

func foreign(conditions any) []any {
	list, _ := conditions.([]any)
	others := []any{}
	for _, item := range list {
		c, _ := item.(map[string]any)
		switch c["type"] {
		case "Running", "Successful", "Failure", "Ready", "Reconciling", "Stalled":
		default:
			others = append(others, item)
		}
	}
	return others
}

// checkOurs bounds what the patch makes of a status, and lets it touch nothing
// else.
func checkOurs(t *testing.T, operations []status.Operation) {
	t.Helper()
	size := 0
	for i, operation := range operations {
		value := text(operation.Value)
		size += len(value)
		if i < 2 != (operation.Op == "test") {
			t.Errorf("operation %d is %+v", i, operation)
		}
		if operation.Op != "test" && !strings.HasPrefix(operation.Path, "/status") || !utf8.ValidString(value) {
			t.Errorf("the patch holds %+v", operation)
		}
	}
	if size > 20<<10 {
		t.Errorf("%d bytes are written to the status", size)
	}
}

func text(value any) string {
	data, _ := json.Marshal(value)
	return string(data)
}

// FuzzRead reads whatever stands in a status. A retry is after the run that it follows, a success needs what
// proves it, and nothing of the object changes.
func FuzzRead(f *testing.F) {
	f.Add(`{"conditions":[{"type":"Running","status":"True","reason":"Running"},{"type":"Failure","status":"True","message":1}],"contentRun":{"endedAt":"2026-01-02T03:04:05Z","nextAt":"2026-01-02T03:04:04Z"}}`, "d")
	f.Add(`{"observedGeneration":5,"contentDigest":"d","conditions":[{"type":"Running","status":"True","reason":"Successful","ansibleResult":{"completion":"2026-01-02T03:04:05.000000"}},{"type":"Successful","status":"True"}]}`, "d")
	f.Add(`{"conditions":{"type":"Running"},"contentRun":[1],"contentDigest":{}}`, "")
	f.Fuzz(func(t *testing.T, statusText, digest string) {
		obj := &unstructured.Unstructured{}
		if obj.UnmarshalJSON([]byte(`{"apiVersion":"g/v1","kind":"K","metadata":{"name":"n","generation":5},"status":`+statusText+"}")) != nil {
			return
		}
		before := obj.DeepCopy()
		if run := status.ReadRun(obj); !run.Next.IsZero() && !run.Next.After(run.Ended) {
			t.Errorf("the retry of a run that ended at %s is at %s", run.Ended, run.Next)
		}
		if status.ShowsRun(obj) != (status.Read(obj, status.Running).Status == "True" && status.Read(obj, status.Running).Reason == status.ReasonRunning) {
			t.Error("a run is shown, or not")
		}
		last := status.Last(obj)
		if failed := last.Verdict == content.Failed; failed != (status.Read(obj, status.Failure).Status == "True") {
			t.Errorf("got %+v", last)
		}
		if ended, ok := status.SucceededWith(obj, digest); ok && (ended.IsZero() || status.Digest(obj) != digest || status.Read(obj, status.Successful).Status != "True") {
			t.Errorf("it has succeeded at %s", ended)
		}
		status.Request(obj)
		if !reflect.DeepEqual(before.Object, obj.Object) {
			t.Error("the object that was read has changed")
		}
	})
}

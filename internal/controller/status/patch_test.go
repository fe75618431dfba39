package status_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/ansible/engine"
	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/pkg/content"
)

var (
	first = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	later = first.Add(time.Hour)
)

func summary() jobevent.Summary {
	return jobevent.Summary{
		StatsSeen: true, OK: 4, Changed: 2, Skipped: 1, Failures: 3, Hosts: 1,
		Completion: time.Date(2026, 1, 2, 3, 4, 5, 120_000_000, time.FixedZone("", 3600)),
	}
}

func finished(generation int64, outcome content.Outcome, s jobevent.Summary) status.Report {
	return status.Finished(generation, content.Result{Outcome: outcome, Counts: engine.Counts(s)})
}

func refused(message string) status.Report {
	return status.Finished(2, content.Result{Outcome: *content.Refusal(content.ReasonInvalidSpec, errors.New(message))}).WithRun(status.LastRun{})
}

func refusedAnnotation() status.Report {
	return status.Finished(1, content.Result{Outcome: *content.Refusal(content.ReasonInvalidAnnotation, errors.New("annotation a/paused: maybe"))}).WithRun(status.LastRun{})
}

func succeeded() content.Outcome {
	return content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful}
}

func failed() content.Outcome {
	return content.Outcome{Verdict: content.Failed, Reason: jobevent.ReasonUnreachable, Message: "host db is unreachable"}
}

func canceled() content.Outcome {
	return content.Outcome{Verdict: content.Canceled, Reason: content.ReasonCanceled}
}

// object returns a CR whose status is the JSON text; "" is none.
func object(t *testing.T, statusText string) *unstructured.Unstructured {
	t.Helper()
	text := `{"apiVersion":"g/v1","kind":"K","metadata":{"name":"n","uid":"u1","resourceVersion":"7","generation":2}`
	if statusText != "" {
		text += `,"status":` + statusText
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON([]byte(text + "}")); err != nil {
		t.Fatal(err)
	}
	return obj
}

// apply patches the object as the API server does.
func apply(t *testing.T, obj *unstructured.Unstructured, report status.Report, now time.Time) *unstructured.Unstructured {
	t.Helper()
	operations := status.Patch(obj, report, now)
	if operations == nil {
		return obj
	}
	data, err := json.Marshal(operations)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		t.Fatal(err)
	}
	before, err := obj.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	after, err := patch.Apply(before)
	if err != nil {
		t.Fatalf("apply %s: %v", data, err)
	}
	result := &unstructured.Unstructured{}
	if err := result.UnmarshalJSON(after); err != nil {
		t.Fatal(err)
	}
	return result
}

// conditions returns "status/reason" by type.
func conditions(obj *unstructured.Unstructured) map[string]string {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	found := map[string]string{}
	for _, item := range list {
		c := item.(map[string]any)
		found[c["type"].(string)] = c["status"].(string) + "/" + c["reason"].(string)
	}
	return found
}

func TestConditionsOfEachMoment(t *testing.T) {
	const reportedOne = `{"observedGeneration":1,"conditions":[
		{"type":"Running","status":"True","reason":"Successful","message":"","lastTransitionTime":"2020-01-01T00:00:00Z","observedGeneration":1},
		{"type":"Successful","status":"True","reason":"Successful","message":"","lastTransitionTime":"2020-01-01T00:00:00Z","observedGeneration":1},
		{"type":"Failure","status":"False","reason":"Successful","message":"","lastTransitionTime":"2020-01-01T00:00:00Z","observedGeneration":1}]}`
	for name, test := range map[string]struct {
		before string
		report status.Report
		want   map[string]string
	}{
		"a first start says that nothing has succeeded yet": {
			"", status.Started(2, false), map[string]string{"Running": "True/Running", "Successful": "False/Running", "Ready": "Unknown/Running", "Reconciling": "True/Running"},
		},
		"a start for a new generation takes the old success back": {
			reportedOne, status.Started(2, false), map[string]string{"Running": "True/Running", "Successful": "False/Running", "Failure": "False/Successful", "Ready": "False/Running", "Reconciling": "True/Running"},
		},
		"a start for the same generation leaves its success": {
			reportedOne, status.Started(1, false), map[string]string{"Running": "True/Running", "Successful": "True/Successful", "Failure": "False/Successful"},
		},
		"a start that is known to repeat a generation leaves its success, whatever the schema keeps": {
			`{"conditions":[{"type":"Successful","status":"True","reason":"Successful"}]}`, status.Started(2, true), map[string]string{"Running": "True/Running", "Successful": "True/Successful"},
		},
		"success": {
			"", finished(2, succeeded(), summary()), map[string]string{"Running": "True/Successful", "Successful": "True/Successful", "Failure": "False/Successful", "Ready": "True/Successful"},
		},
		"failure keeps its own reason in Failure": {
			"", finished(2, failed(), summary()), map[string]string{"Running": "False/Failed", "Successful": "False/Failed", "Failure": "True/Unreachable", "Ready": "False/Unreachable", "Reconciling": "True/Retrying"},
		},
		"a canceled run is no failure and takes no success back": {
			reportedOne, finished(1, canceled(), jobevent.Summary{}), map[string]string{"Running": "False/Canceled", "Successful": "True/Successful", "Failure": "False/Successful"},
		},
		"a refused CR fails without a run": {
			"", refused("no"), map[string]string{"Running": "False/Failed", "Successful": "False/Failed", "Failure": "True/InvalidSpec", "Ready": "False/InvalidSpec", "Stalled": "True/InvalidSpec"},
		},
		"in a pause nothing runs, and what came before stands": {
			reportedOne, status.Paused(2), map[string]string{"Running": "False/Paused", "Successful": "True/Successful", "Failure": "False/Successful", "Ready": "False/Paused"},
		},
		"a first pause says nothing of success": {
			"", status.Paused(2), map[string]string{"Running": "False/Paused", "Ready": "False/Paused"},
		},
		"a status that is null is filled": {
			"null", status.Started(2, false), map[string]string{"Running": "True/Running", "Successful": "False/Running", "Ready": "Unknown/Running", "Reconciling": "True/Running"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			after := apply(t, object(t, test.before), test.report, first)
			if diff := cmp.Diff(test.want, conditions(after)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOneConditionWhole(t *testing.T) {
	after := apply(t, object(t, ""), finished(2, failed(), summary()), first)
	list, _, _ := unstructured.NestedSlice(after.Object, "status", "conditions")
	want := map[string]any{
		"type": "Failure", "status": "True", "reason": "Unreachable", "message": "host db is unreachable",
		"lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": int64(2),
		"ansibleResult": map[string]any{
			"ok": int64(4), "changed": int64(2), "skipped": int64(1), "failures": int64(3), "completion": "2026-01-02T02:04:05.12+00:00",
		},
	}
	if diff := cmp.Diff(want, list[2]); diff != "" {
		t.Errorf("Failure (-want +got):\n%s", diff)
	}
	if observed, _, _ := unstructured.NestedInt64(after.Object, "status", "observedGeneration"); observed != 2 {
		t.Errorf("want observedGeneration 2, got %d", observed)
	}
}

// What a run counted stands in Ensign's own conditions that are True, and in none of its content.
func TestWhichConditionsHaveTheCounts(t *testing.T) {
	for name, c := range map[string]struct {
		outcome content.Outcome
		want    []string
	}{
		"a success": {succeeded(), []string{"Running", "Successful"}},
		"a failure": {failed(), []string{"Failure"}},
		"a cancel":  {canceled(), nil},
	} {
		result := content.Result{Outcome: c.outcome, Counts: engine.Counts(summary()), Conditions: []metav1.Condition{{Type: "Deployed", Status: metav1.ConditionTrue, Reason: "Installed"}}}
		after := apply(t, object(t, ""), status.Finished(2, result), first)
		list, _, _ := unstructured.NestedSlice(after.Object, "status", "conditions")
		var got []string
		for _, item := range list {
			if fields := item.(map[string]any); fields["ansibleResult"] != nil {
				got = append(got, fields["type"].(string))
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := conditions(after)["Deployed"]; got != "True/Installed" {
			t.Errorf("%s: the content's own: %q", name, got)
		}
	}
}

func TestAPauseObservesNoGeneration(t *testing.T) {
	for before, want := range map[string]int64{`{"observedGeneration":1,"conditions":[]}`: 1, "": 0} {
		after := apply(t, object(t, before), status.Paused(2), first)
		if got, _, _ := unstructured.NestedInt64(after.Object, "status", "observedGeneration"); got != want {
			t.Errorf("%s: want %d, got %d", before, want, got)
		}
	}
}

func TestWhatOthersWroteSurvives(t *testing.T) {
	before := object(t, `{"endpoint":"db.svc","huge":12345678901234567,"conditions":[
		{"type":"BackupDone","status":"True","own":{"deep":[1,2.5,null]}},
		{"type":"Successful","status":"False","reason":"Old","lastTransitionTime":"2020-01-01T00:00:00Z"}]}`)
	after := apply(t, before, finished(2, succeeded(), summary()), first)
	got := after.Object["status"].(map[string]any)
	wantOthers := before.Object["status"].(map[string]any)
	if diff := cmp.Diff(wantOthers["conditions"].([]any)[0], got["conditions"].([]any)[0]); diff != "" {
		t.Errorf("a foreign condition changed (-want +got):\n%s", diff)
	}
	if got["endpoint"] != "db.svc" || got["huge"] != int64(12345678901234567) {
		t.Errorf("custom status keys changed: %v", got)
	}
	for _, operation := range status.Patch(before, finished(2, succeeded(), summary()), first) {
		if operation.Path == "/status" || operation.Path == "/status/conditions" || operation.Path == "/status/conditions/0" {
			t.Errorf("the patch sends what is not ours: %+v", operation)
		}
	}
}

func TestPatchBeginsWithItsTests(t *testing.T) {
	got := status.Patch(object(t, ""), status.Started(2, false), first)
	want := []status.Operation{
		{Op: "test", Path: "/metadata/uid", Value: "u1"},
		{Op: "test", Path: "/metadata/resourceVersion", Value: "7"},
	}
	if diff := cmp.Diff(want, got[:2]); diff != "" {
		t.Errorf("tests (-want +got):\n%s", diff)
	}
}

func TestNothingIsWrittenWhenNothingChanged(t *testing.T) {
	for name, report := range map[string]status.Report{
		"started": status.Started(2, false), "succeeded": finished(2, succeeded(), summary()),
		"failed": finished(2, failed(), summary()), "paused": status.Paused(2), "refused": refused("no"),
	} {
		t.Run(name, func(t *testing.T) {
			after := apply(t, object(t, ""), report, first)
			if operations := status.Patch(after, report, later); operations != nil {
				t.Errorf("want no operations, got %+v", operations)
			}
		})
	}
}

func TestAnOlderGenerationIsNeverReported(t *testing.T) {
	obj := object(t, `{"observedGeneration":2}`)
	if operations := status.Patch(obj, finished(1, succeeded(), summary()), first); operations != nil {
		t.Errorf("want no operations, got %+v", operations)
	}
}

func TestAGenerationThatTheObjectHasNotReachedIsNobodysReport(t *testing.T) {
	after := apply(t, object(t, `{"observedGeneration":57}`), finished(2, succeeded(), summary()), first)
	if observed, _, _ := unstructured.NestedInt64(after.Object, "status", "observedGeneration"); observed != 2 {
		t.Errorf("want observedGeneration 2, got %d", observed)
	}
}

func TestTransitionTimeMovesWithTheStatusOnly(t *testing.T) {
	transition := func(obj *unstructured.Unstructured, index int) any {
		list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
		return list[index].(map[string]any)["lastTransitionTime"]
	}
	obj := apply(t, object(t, ""), status.Started(2, false), first)
	obj = apply(t, obj, finished(2, succeeded(), summary()), later)
	const running, successful = 0, 1
	if got := transition(obj, running); got != first.Format(time.RFC3339) {
		t.Errorf("Running stayed True, and its time moved to %v", got)
	}
	if got := transition(obj, successful); got != later.Format(time.RFC3339) {
		t.Errorf("Successful became True, and its time stayed at %v", got)
	}
}

func TestLast(t *testing.T) {
	for name, test := range map[string]struct {
		report status.Report
		want   content.Outcome
	}{
		"a success":                    {finished(2, succeeded(), summary()), succeeded()},
		"a failure with its message":   {finished(2, failed(), summary()), failed()},
		"a run at work tells nothing":  {status.Started(2, false), content.Outcome{}},
		"a canceled run tells nothing": {finished(2, canceled(), summary()), content.Outcome{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, status.Last(apply(t, object(t, ""), test.report, first))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What we own of a status stays below 20 KiB, and its message below 4, whatever
// hosts, tasks and modules say, and however often it is reported.
func TestTheStatusIsBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	alphabets := map[string]string{
		"letters":                 "abc ",
		"characters of any width": "a€😀\u0301",
		"what JSON escapes":       "\"\\\n\t",
		"what HTML escapes":       "<>&",
		"controls":                "\x00\x1b\u2028\u2029",
		"bytes that are no UTF-8": "\xff\xc0\xe2\x82",
	}
	for name, alphabet := range alphabets {
		t.Run(name, func(t *testing.T) {
			pool := make([]string, 20)
			for i := range pool {
				pool[i] = drawn(random, alphabet)
			}
			text := func() string { return pool[random.IntN(len(pool))] }
			obj := object(t, "")
			for generation := range int64(3) {
				obj.SetGeneration(generation)
				var s jobevent.Summary
				for range 8 {
					for _, kind := range []jobevent.Kind{jobevent.ItemFailed, jobevent.HostFailed, jobevent.HostUnreachable} {
						s.Fold(jobevent.Event{Kind: kind, Play: text(), Task: text(), Host: text(), Result: map[string]any{"msg": text(), "_ansible_item_label": text()}})
					}
				}
				if generation%2 == 0 {
					huge := map[string]int{text(): math.MaxInt}
					s.Fold(jobevent.Event{Kind: jobevent.Stats, HostStats: &jobevent.HostStats{OK: huge, Changed: huge, Failures: huge, Unreachable: huge, Processed: huge}})
				}
				for _, report := range []status.Report{
					status.Started(generation, false),
					status.Finished(generation, content.Result{Outcome: content.Outcome{Verdict: content.Failed, Reason: content.Reason(text()), Message: text()}}),
					finished(generation, jobevent.DetermineOutcome(jobevent.ProcessExit{ExitCode: 2, Output: text()}, s), s),
				} {
					obj = apply(t, obj, report, later)
					expectSmall(t, obj)
				}
			}
		})
	}
}

// drawn is a text of several KiB.
func drawn(random *rand.Rand, alphabet string) string {
	text := make([]byte, 0, 6<<10)
	for range random.IntN(cap(text)) {
		text = append(text, alphabet[random.IntN(len(alphabet))])
	}
	return string(text) + strings.Repeat(alphabet, random.IntN(1<<8))
}

func expectSmall(t *testing.T, obj *unstructured.Unstructured) {
	t.Helper()
	written, err := json.Marshal(obj.Object["status"])
	if err != nil {
		t.Fatal(err)
	}
	if len(written) > 20<<10 {
		t.Errorf("the status has %d bytes", len(written))
	}
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, item := range list {
		message := item.(map[string]any)["message"].(string)
		if len(message) > 4<<10 || !utf8.ValidString(message) {
			t.Errorf("a message of %d bytes", len(message))
		}
	}
}

func TestAMessageIsCutOnlyWhereItMustBe(t *testing.T) {
	for name, test := range map[string]struct{ message, want string }{
		"4 KiB stay":                    {strings.Repeat("x", 4096), strings.Repeat("x", 4096)},
		"one more does not":             {strings.Repeat("x", 4097), strings.Repeat("x", 4087) + "… [cut]"},
		"a character is kept or is not": {strings.Repeat("x", 4086) + strings.Repeat("€", 4), strings.Repeat("x", 4086) + "… [cut]"},
		"no UTF-8 stays no UTF-8":       {"a\xffb", "a\ufffdb"},
	} {
		t.Run(name, func(t *testing.T) {
			after := apply(t, object(t, ""), refused(test.message), first)
			if got := status.Last(after).Message; got != test.want {
				t.Errorf("got %d bytes, ending in %q", len(got), got[max(0, len(got)-20):])
			}
		})
	}
}

func TestWhatIsReportedDuringARun(t *testing.T) {
	const started = `{"observedGeneration":2,"conditions":[{"type":"Running","status":"True","reason":"Running","message":"Running reconciliation","lastTransitionTime":"2026-01-02T03:04:05Z","observedGeneration":2}]}`
	const over = `{"observedGeneration":2,"conditions":[{"type":"Running","status":"True","reason":"Successful","message":"Awaiting next reconciliation","lastTransitionTime":"2026-01-02T03:04:05Z","observedGeneration":2}]}`
	for why, test := range map[string]struct {
		status string
		report status.Report
		want   string // Running's status, reason and message; "" for no write
	}{
		"the task and its beginning, in UTC": {
			started, status.Working(2, status.Progress{Task: "db : Wait for it", Since: later.In(time.FixedZone("", 3600))}),
			`True Running Running reconciliation: task "db : Wait for it" since 2026-01-02T04:04:05Z`,
		},
		"a name holds no control characters and no line ends": {
			started, status.Working(2, status.Progress{Task: "a\x1b[31mred\nb\x07", Since: first}), `True Running Running reconciliation: task "ared\nb\\x07" since 2026-01-02T03:04:05Z`,
		},
		"a long name is cut": {
			started, status.Working(2, status.Progress{Task: strings.Repeat("n", 1000), Since: first}),
			`True Running Running reconciliation: task "` + strings.Repeat("n", 256-len("… [cut]")) + `… [cut]" since 2026-01-02T03:04:05Z`,
		},
		"no task after the result":                           {over, status.Working(2, status.Progress{Task: "late", Since: first}), ""},
		"no task where no run was reported":                  {"", status.Working(2, status.Progress{Task: "late", Since: first}), ""},
		"no task of an older generation":                     {started, status.Working(1, status.Progress{Task: "late", Since: first}), ""},
		"a result that is refused ends what was reported":    {started, status.Unwritable(2), "False StatusRefused The schema of this kind refuses the result of the run; the operator's log says why"},
		"a result that is refused changes no earlier result": {over, status.Unwritable(2), ""},
	} {
		t.Run(why, func(t *testing.T) {
			obj := object(t, test.status)
			after := apply(t, obj, test.report, later)
			if test.want == "" {
				if after != obj {
					t.Errorf("want no write, got %v", after.Object["status"])
				}
				return
			}
			list, _, _ := unstructured.NestedSlice(after.Object, "status", "conditions")
			c := list[0].(map[string]any)
			if got := fmt.Sprint(c["status"], " ", c["reason"], " ", c["message"]); got != test.want {
				t.Errorf("want %q, got %q", test.want, got)
			}
			if since := c["lastTransitionTime"]; (since == "2026-01-02T03:04:05Z") != (c["status"] == "True") {
				t.Errorf("the time of the transition moves with the status alone, got %v", since)
			}
		})
	}
}

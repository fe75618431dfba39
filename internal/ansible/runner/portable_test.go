package runner

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/pkg/content"
)

// The description of a run, which another pod may have under another ID, and its kubeconfig are not in the
// payload.
func TestAPortableRunIsTheSameRun(t *testing.T) {
	spec := Spec{
		UID: "u", ID: "r", Watch: "w", CR: "ns/cr", Resource: "g/v/K/ns/cr", Role: "role", RolesPath: "/roles", ExtraVars: []byte("{}"), Kubeconfig: []byte("secret"),
		Verbosity: 3, Timeout: time.Minute, MaxArtifacts: 4,
	}
	portable, err := spec.Portable()
	if err != nil {
		t.Fatal(err)
	}
	if want := (run.Spec{UID: "u", ID: "r", Watch: "w", CR: "ns/cr", Kubeconfig: spec.Kubeconfig, Timeout: time.Minute, Payload: portable.Payload}); cmp.Diff(want, portable) != "" {
		t.Errorf("(-want +got)\n%s", cmp.Diff(want, portable))
	}
	var got Spec
	if err := json.Unmarshal(portable.Payload, &got); err != nil || got.Kubeconfig != nil {
		t.Fatalf("%v, the kubeconfig is %q", err, got.Kubeconfig)
	}
	got.Kubeconfig = spec.Kubeconfig
	if diff := cmp.Diff(spec, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	portable.Payload = []byte("nonsense")
	if result := (&Runner{}).Execute(t.Context(), portable, nil); result.Outcome.Reason != content.ReasonRunnerCrashed || result.Ended.IsZero() {
		t.Errorf("got %+v", result)
	}
}

// What modules print stays in the pod, as far as it is not to be shown.
func TestNothingLeavesThePodUnsanitized(t *testing.T) {
	event := jobevent.Event{
		UUID: "u", Kind: jobevent.HostOK, Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Task: "t", Duration: time.Second, Stdout: "hidden",
		Result: map[string]any{"invocation": "hidden", "n": json.Number("12345678901234567890"), "l": []any{json.Number("1.50"), nil, true}},
	}
	text := string(encode(event))
	var got []jobevent.Event
	decode := Decoded(t.Context(), func(e jobevent.Event) { got = append(got, e) })
	decode([]byte(text))
	event.Stdout = ""
	delete(event.Result, "invocation")
	if diff := cmp.Diff([]jobevent.Event{event}, got); diff != "" || strings.Contains(text, "hidden") {
		t.Errorf("%s (-want +got)\n%s", text, diff)
	}
	for _, bad := range []string{"", "x", "[]", `{"Result":[]}`} {
		decode([]byte(bad))
	}
	if len(got) != 1 {
		t.Errorf("got %+v", got)
	}
}

// The brief form of the largest summary has room in a termination message.
func TestASummaryAndItsBriefForm(t *testing.T) {
	const most = 1 << 40
	whole := jobevent.Summary{
		StatsSeen: true, OK: most, Changed: most, Skipped: most, Failures: most, Unreachable: most, Rescued: most, Ignored: most, Lost: most, Hosts: most, Plays: most, Unmatched: most,
		Completion: time.Now().UTC().Round(0), RequeueAfter: most, Failed: []jobevent.TaskFailure{{Task: "t", Message: strings.Repeat("x", 9000)}}, Task: "t",
	}
	result := resultOf(Result{Summary: whole})
	if got, err := SummaryOf(result); err != nil || cmp.Diff(whole, got) != "" {
		t.Errorf("%v (-want +got)\n%s", err, cmp.Diff(whole, got))
	}
	result.Detail = result.Brief
	whole.Failed, whole.Task = nil, ""
	if got, err := SummaryOf(result); err != nil || len(result.Brief) > 1<<10 || cmp.Diff(whole, got) != "" {
		t.Errorf("%d bytes, %v (-want +got)\n%s", len(result.Brief), err, cmp.Diff(whole, got))
	}
	if got, err := SummaryOf(run.Result{}); err != nil || fmt.Sprint(got) != fmt.Sprint(jobevent.Summary{}) {
		t.Errorf("a run that ended without a result: %+v, %v", got, err)
	}
	for _, bad := range []string{"x", "[]", `{"OK":"1"}`} {
		if got, err := SummaryOf(run.Result{Detail: []byte(bad)}); err == nil || got.StatsSeen {
			t.Errorf("%q is %+v", bad, got)
		}
	}
}

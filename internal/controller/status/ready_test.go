package status_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/pkg/content"
)

// sequence applies reports one after the other, and returns Ready, Reconciling and Stalled.
func sequence(t *testing.T, before string, reports ...status.Report) map[string]string {
	t.Helper()
	obj := object(t, before)
	for _, report := range reports {
		obj = apply(t, obj, report, later)
	}
	found := conditions(obj)
	for _, other := range []string{"Running", "Successful", "Failure", "SlowedDown"} {
		delete(found, other)
	}
	if found["Reconciling"] != "" && found["Stalled"] != "" {
		t.Errorf("Reconciling and Stalled at once: %v", found)
	}
	return found
}

func failedWith(message string) content.Outcome {
	return content.Outcome{Verdict: content.Failed, Reason: content.ReasonFailed, Message: message}
}

func TestReadyReconcilingStalled(t *testing.T) {
	success := finished(2, succeeded(), summary())
	failure := func(message string) status.Report { return finished(2, failedWith(message), summary()) }
	start := status.Started(2, false)
	stalled := failure("not ready after 60 s").Repeated(true)
	for why, test := range map[string]struct {
		before  string
		reports []status.Report
		want    map[string]string
	}{
		"the first run":                                {"", []status.Report{start}, map[string]string{"Ready": "Unknown/Running", "Reconciling": "True/Running"}},
		"a success":                                    {"", []status.Report{start, success}, map[string]string{"Ready": "True/Successful"}},
		"a run of a Ready CR changes nothing":          {"", []status.Report{start, success, start}, map[string]string{"Ready": "True/Successful"}},
		"a drift run that fails":                       {"", []status.Report{success, start, failure("no")}, map[string]string{"Ready": "False/Failed", "Reconciling": "True/Retrying"}},
		"a canceled drift run":                         {"", []status.Report{success, start, finished(2, canceled(), summary())}, map[string]string{"Ready": "True/Successful"}},
		"a retry shows why the last one failed":        {"", []status.Report{start, failure("no"), start}, map[string]string{"Ready": "False/Failed", "Reconciling": "True/Retrying"}},
		"a new generation after a failure":             {"", []status.Report{finished(1, failed(), summary()), start}, map[string]string{"Ready": "False/Running", "Reconciling": "True/Running"}},
		"a new generation after Stalled":               {"", []status.Report{finished(1, failed(), summary()).Repeated(true), start}, map[string]string{"Ready": "False/Running", "Reconciling": "True/Running"}},
		"Stalled":                                      {"", []status.Report{start, stalled}, map[string]string{"Ready": "False/Failed", "Stalled": "True/Failed"}},
		"Stalled stays in the next retry":              {"", []status.Report{stalled, start}, map[string]string{"Ready": "False/Failed", "Stalled": "True/Failed"}},
		"and after a restart, which forgets the count": {"", []status.Report{stalled, start, failure("not ready after 61.5 s")}, map[string]string{"Ready": "False/Failed", "Stalled": "True/Failed"}},
		"not with another message":                     {"", []status.Report{stalled, start, failure("no such table")}, map[string]string{"Ready": "False/Failed", "Reconciling": "True/Retrying"}},
		"not in a run that somebody asked for":         {"", []status.Report{stalled, start.AskedFor()}, map[string]string{"Ready": "False/Failed", "Reconciling": "True/Running"}},
		"nor after its failure":                        {"", []status.Report{stalled, start.AskedFor(), failure("not ready after 60 s")}, map[string]string{"Ready": "False/Failed", "Reconciling": "True/Retrying"}},
		"not after a success":                          {"", []status.Report{stalled, start, success}, map[string]string{"Ready": "True/Successful"}},
		"a refusal":                                    {"", []status.Report{refused("no")}, map[string]string{"Ready": "False/InvalidSpec", "Stalled": "True/InvalidSpec"}},
		"a refusal ends with the next run":             {"", []status.Report{refused("no"), start}, map[string]string{"Ready": "False/InvalidSpec", "Reconciling": "True/Running"}},
		"a person has canceled the first run":          {"", []status.Report{start, finished(2, canceled(), summary()).Repeated(true)}, map[string]string{"Ready": "False/Canceled", "Stalled": "True/Canceled"}},
		"a person has canceled a drift run":            {"", []status.Report{success, start, finished(2, canceled(), summary()).Repeated(true)}, map[string]string{"Ready": "True/Successful"}},
		"paused while it fails":                        {"", []status.Report{start, failure("no"), status.Paused(2)}, map[string]string{"Ready": "False/Failed"}},
		"paused and resumed before the first run":      {"", []status.Report{status.Paused(2), start}, map[string]string{"Ready": "Unknown/Running", "Reconciling": "True/Running"}},
		"of an earlier manager's success":              {`{"observedGeneration":2}`, []status.Report{status.Confirmed(2)}, map[string]string{"Ready": "True/Successful"}},
		"its schema refuses the result":                {"", []status.Report{start, status.Unwritable(2)}, map[string]string{"Ready": "False/StatusRefused", "Stalled": "True/StatusRefused"}},
	} {
		t.Run(why, func(t *testing.T) {
			got := sequence(t, test.before, test.reports...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A refusal ends Ready also after a success, with and without the health of children, until a run succeeds.
func TestARefusedAnnotationAfterASuccess(t *testing.T) {
	success, again, start := finished(1, succeeded(), summary()), refusedAnnotation(), status.Started(1, true)
	observed := status.Observed(1, &status.Health{Known: true})
	stalled := map[string]string{"Ready": "False/InvalidAnnotation", "Stalled": "True/InvalidAnnotation"}
	for why, test := range map[string]struct {
		reports []status.Report
		want    map[string]string
	}{
		"refused":                          {[]status.Report{success, again}, stalled},
		"refused by the next manager, too": {[]status.Report{success, again, again}, stalled},
		"the children are healthy":         {[]status.Report{success, observed, again, observed}, stalled},
		"paused then":                      {[]status.Report{success, again, status.Paused(1)}, stalled},
		"the next run":                     {[]status.Report{success, again, start}, map[string]string{"Ready": "False/InvalidAnnotation", "Reconciling": "True/Running"}},
		"its success":                      {[]status.Report{success, again, start, success}, map[string]string{"Ready": "True/Successful"}},
	} {
		if got := sequence(t, "", test.reports...); !cmp.Equal(got, test.want) {
			t.Errorf("%s (-want +got):\n%s", why, cmp.Diff(test.want, got))
		}
	}
}

// A Ready that content has written stays as it is, whatever happens, until other content succeeds without
// writing it.
func TestAReadyOfTheContent(t *testing.T) {
	const written = `{"conditions":[{"type":"Ready","status":"False","reason":"Own","message":"of the content"}]}`
	run := func(digest string) status.LastRun {
		return status.LastRun{Ended: first, Version: content.Version{Digest: digest}}
	}
	by := func(digest string, outcome content.Outcome, setting string, wrote bool) status.Report {
		return finished(2, outcome, summary()).WithRun(run(digest)).ReadyBy(setting, wrote)
	}
	start := status.Started(2, false)
	for why, test := range map[string]struct {
		reports []status.Report
		want    string
		last    map[string]string // beside Ready
	}{
		"a run that wrote it":                      {[]status.Report{by("a", succeeded(), "", true)}, "False/Own", nil},
		"that failed":                              {[]status.Report{by("a", failed(), "", true)}, "False/Own", map[string]string{"Reconciling": "True/Retrying"}},
		"the next run, which did not":              {[]status.Report{by("a", succeeded(), "", true), by("a", succeeded(), "", false)}, "False/Own", nil},
		"nor one of content of an unknown digest":  {[]status.Report{by("", succeeded(), "", true), by("", succeeded(), "", false)}, "False/Own", nil},
		"a new generation begins":                  {[]status.Report{by("a", succeeded(), "", true), status.Started(3, false)}, "False/Own", map[string]string{"Reconciling": "True/Running"}},
		"other content fails":                      {[]status.Report{by("a", succeeded(), "", true), by("b", failed(), "", false)}, "False/Own", map[string]string{"Reconciling": "True/Retrying"}},
		"other content succeeds without it":        {[]status.Report{by("a", succeeded(), "", true), by("b", succeeded(), "", false)}, "True/Successful", nil},
		"the watch says content":                   {[]status.Report{start.ReadyBy(status.ReadyByContent, false), by("a", succeeded(), status.ReadyByContent, false)}, "False/Own", nil},
		"the watch says manager":                   {[]status.Report{by("a", succeeded(), status.ReadyByManager, true)}, "True/Successful", nil},
		"a Ready that no run wrote is the manager": {[]status.Report{by("a", succeeded(), "", false)}, "True/Successful", nil},
	} {
		t.Run(why, func(t *testing.T) {
			got := sequence(t, written, test.reports...)
			want := map[string]string{"Ready": test.want}
			maps.Copy(want, test.last)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A Go program's content may return Ready among its own conditions.
func TestAReadyInTheResult(t *testing.T) {
	own := func(setting string) map[string]string {
		result := content.Result{Outcome: succeeded(), Conditions: []metav1.Condition{{Type: "Ready", Status: "False", Reason: "Own"}}}
		got := sequence(t, "", status.Finished(2, result).WithRun(status.LastRun{Ended: first}).ReadyBy(setting, false))
		return got
	}
	for setting, want := range map[string]string{"": "False/Own", status.ReadyByContent: "False/Own", status.ReadyByManager: "True/Successful"} {
		if got := own(setting)["Ready"]; got != want {
			t.Errorf("%q: want %s, got %s", setting, want, got)
		}
	}
}

func TestSameFailure(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"no", "no", true},
		{"no", "yes", false},
		{"the task took 1m30.5s", "the task took 58s", true},
		{"at 2026-01-02T03:04:05Z: no", "at 2026-01-02 03:05:05.123+01:00: no", true},
		{"is not ready after 60 s", "is not ready after 61 s", true},
		{"1 of 3 are ready", "2 of 3 are ready", false},
	} {
		if got := status.SameFailure(failedWith(test.a), failedWith(test.b)); got != test.want {
			t.Errorf("%q and %q: got %t", test.a, test.b, got)
		}
	}
	if status.SameFailure(succeeded(), succeeded()) {
		t.Error("two successes are a failure")
	}
}

package status_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/pkg/content"
)

var version = content.Version{Name: "1.4.0", Digest: "3f2a9c1d0b12"}

// withoutStats is the report of a run that ended before Ansible's statistics.
func withoutStats(reason content.Reason, run status.LastRun) status.Report {
	outcome := content.Outcome{Verdict: content.Failed, Reason: reason, Message: "m"}
	return finished(2, outcome, jobevent.Summary{}).WithRun(run)
}

func TestTheLastRunIsToldHoweverItEnded(t *testing.T) {
	at := func(minutes int) time.Time { return later.Add(time.Duration(minutes) * time.Minute) }
	run := status.LastRun{Ended: at(1), Next: at(2), Version: version}
	good := finished(2, succeeded(), summary()).WithRun(status.LastRun{Ended: first, Version: version})
	for name, test := range map[string]struct {
		reports []status.Report
		want    status.LastRun
	}{
		"a run that took too long": {[]status.Report{withoutStats(content.ReasonTimeout, run)}, run},
		"the second of two failures, whose condition has not changed": {
			[]status.Report{withoutStats(jobevent.ReasonNoStats, status.LastRun{Ended: first, Next: later}), withoutStats(jobevent.ReasonNoStats, run)}, run,
		},
		"a success, whose next run the period tells":  {[]status.Report{withoutStats(content.ReasonTimeout, run), finished(2, succeeded(), summary()).WithRun(status.LastRun{Ended: at(3)})}, status.LastRun{Ended: at(3)}},
		"a run that was canceled":                     {[]status.Report{good, finished(2, canceled(), jobevent.Summary{}).WithRun(status.LastRun{Ended: at(4), Version: version})}, status.LastRun{Ended: at(4), Version: version}},
		"the one before, where nothing was run":       {[]status.Report{withoutStats(content.ReasonTimeout, run), refused("m").WithRun(status.LastRun{})}, status.LastRun{Ended: at(1), Version: version}},
		"the one before, while the next is at work":   {[]status.Report{withoutStats(content.ReasonTimeout, run), status.Started(2, true)}, run},
		"the one before, in a pause":                  {[]status.Report{withoutStats(content.ReasonTimeout, run), status.Paused(2)}, run},
		"none, where nothing was run":                 {[]status.Report{refused("m").WithRun(status.LastRun{})}, status.LastRun{}},
		"one by a manager that writes no such key":    {[]status.Report{withoutStats(content.ReasonTimeout, status.LastRun{Ended: first.Add(-2 * time.Hour), Next: at(1), Version: version}), finished(2, succeeded(), summary())}, status.LastRun{Ended: summary().Completion}},
		"one whose result the schema refused":         {[]status.Report{withoutStats(content.ReasonTimeout, status.LastRun{Ended: first, Next: later, Version: version}), status.Started(2, true), status.Unwritable(2)}, status.LastRun{Ended: later}},
		"a failure, by the change of Running":         {[]status.Report{status.Started(2, false), withoutStats(content.ReasonTimeout, status.LastRun{})}, status.LastRun{Ended: later}},
		"a retry that was due before the end is none": {[]status.Report{withoutStats(content.ReasonTimeout, status.LastRun{Ended: at(2), Next: at(1)})}, status.LastRun{Ended: at(2)}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := object(t, "")
			for _, report := range test.reports {
				obj = apply(t, obj, report, later)
				if again := status.Patch(obj, report, later.Add(time.Hour)); again != nil {
					t.Errorf("once applied, there is still to write: %+v", again)
				}
			}
			if diff := cmp.Diff(test.want, status.ReadRun(obj), cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatOthersWroteIsNoRun(t *testing.T) {
	for _, text := range []string{`{}`, `{"contentRun":"now"}`, `{"contentRun":{"endedAt":1,"nextAt":"soon","version":["a"]}}`} {
		if diff := cmp.Diff(status.LastRun{}, status.ReadRun(object(t, text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	obj := apply(t, object(t, `{"contentRun":"now"}`), withoutStats(content.ReasonTimeout, status.LastRun{Ended: later}), later)
	if got, _, _ := unstructured.NestedString(obj.Object, "status", "contentRun", "endedAt"); got != later.Format(time.RFC3339) {
		t.Errorf("got %q", got)
	}
}

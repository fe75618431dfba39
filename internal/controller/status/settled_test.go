package status_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/pkg/content"
)

func TestSettled(t *testing.T) {
	success := func() status.Report { return finished(2, succeeded(), summary()).WithDigest("d1") }
	for name, test := range map[string]struct {
		reports []status.Report
		change  func(*unstructured.Unstructured)
		digest  string
		want    bool
	}{
		"after a success with this digest":       {reports: []status.Report{success()}, digest: "d1", want: true},
		"not with other content":                 {reports: []status.Report{success()}, digest: "d2"},
		"not where nobody knows the content":     {reports: []status.Report{success()}, digest: ""},
		"not after a success without any digest": {reports: []status.Report{finished(2, succeeded(), summary())}, digest: "d1"},
		"not after a success whose digest is unknown, though an earlier one's is known": {
			reports: []status.Report{success(), finished(2, succeeded(), summary())}, digest: "d1",
		},
		"not where the object is younger than the run that its status tells of, as one that was restored": {
			reports: []status.Report{success()}, digest: "d1",
			change: func(obj *unstructured.Unstructured) {
				obj.SetCreationTimestamp(metav1.NewTime(summary().Completion.Add(time.Minute)))
			},
		},
		"not before any run": {digest: "d1"},
		"not while a run is at work, or was when the manager died": {reports: []status.Report{success(), status.Started(2, true)}, digest: "d1"},
		"not after a failure": {reports: []status.Report{success(), finished(2, failed(), summary())}, digest: "d1"},
		"not after a cancel":  {reports: []status.Report{success(), finished(2, canceled(), summary())}, digest: "d1"},
		"not for a new generation": {
			reports: []status.Report{success()}, digest: "d1",
			change: func(obj *unstructured.Unstructured) { obj.SetGeneration(3) },
		},
		"not for a kind without generations, whose changes it does not tell of": {
			reports: []status.Report{finished(0, succeeded(), summary()).WithDigest("d1")}, digest: "d1",
			change: func(obj *unstructured.Unstructured) { obj.SetGeneration(0) },
		},
		"not without the time of the run": {
			reports: []status.Report{success()}, digest: "d1",
			change: func(obj *unstructured.Unstructured) {
				list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
				delete(list[0].(map[string]any), "ansibleResult")
				if err := unstructured.SetNestedSlice(obj.Object, list, "status", "conditions"); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := object(t, "")
			for _, report := range test.reports {
				obj = apply(t, obj, report, first)
			}
			if test.change != nil {
				test.change(obj)
			}
			ended, ok := status.SucceededWith(obj, test.digest)
			if ok != test.want {
				t.Fatalf("want %t, got %t", test.want, ok)
			}
			if ok && !ended.Equal(summary().Completion.Truncate(time.Microsecond)) {
				t.Errorf("got the time %s", ended)
			}
		})
	}
}

func TestSettledWithoutAResultOfAnsible(t *testing.T) {
	ended := summary().Completion.Truncate(time.Second)
	success := status.Finished(2, content.Result{Outcome: content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful}}).WithDigest("d1").WithRun(status.LastRun{Ended: ended})
	obj := apply(t, object(t, ""), success, first)
	if got, ok := status.SucceededWith(obj, "d1"); !ok || !got.Equal(ended) {
		t.Errorf("got %s, %t", got, ok)
	}
	obj.SetCreationTimestamp(metav1.NewTime(ended.Add(time.Minute)))
	if _, ok := status.SucceededWith(obj, "d1"); ok {
		t.Error("the object is younger than its run")
	}
}

func TestWhatIsReadFromAStatus(t *testing.T) {
	after := apply(t, apply(t, object(t, ""), finished(2, failed(), summary()), first), finished(2, succeeded(), summary()).WithRequest("now"), later)
	if got := status.Request(after); got != "now" {
		t.Errorf("the request: got %q", got)
	}
	if want, got := summary().Completion, status.ReadRun(after).Ended; !got.Equal(want) {
		t.Errorf("the end: want %s, got %s", want, got)
	}
	want := metav1.Condition{ObservedGeneration: 2, Type: "Successful", Status: "True", Reason: "Successful", Message: "Last reconciliation succeeded", LastTransitionTime: metav1.NewTime(later)}
	if diff := cmp.Diff(want, status.Read(after, status.Successful)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, other := range []string{"", "{}", `{"conditions":[{"type":"Running","ansibleResult":{"completion":"soon"},"lastTransitionTime":1}]}`} {
		if ended, since := status.ReadRun(object(t, other)).Ended, status.Read(object(t, other), status.Running).LastTransitionTime; !ended.IsZero() || !since.IsZero() {
			t.Errorf("%s: got %s, %s", other, ended, since)
		}
	}
	kept := apply(t, after, finished(2, succeeded(), summary()), later)
	if got := status.Request(kept); got != "now" {
		t.Errorf("a later run without a request: got %q", got)
	}
}

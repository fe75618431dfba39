package controller

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/pkg/content"
)

func TestCause(t *testing.T) {
	condition := func(kind, status string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": "R"}
	}
	reported := func(generation int64, conditions ...any) func(*unstructured.Unstructured) {
		return withStatus(map[string]any{"observedGeneration": generation, "contentDigest": "d1", "conditions": conditions})
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const drift = causeRelated + "Secret a/b changed"
	succeeded, failed := reported(1, condition("Successful", "True")), reported(1, condition("Failure", "True"))
	// ran is the state after a run of the first generation.
	ran := func(change func(*known)) known {
		st := known{state: state{version: version{uid: "uid-1", generation: 1}, last: &conclusion{}}}
		change(&st)
		return st
	}
	nothing := func(*known) {}
	failure := func(st *known) { st.last.Outcome.Verdict = content.Failed }
	for name, test := range map[string]struct {
		cr     *unstructured.Unstructured
		state  known
		digest string
		want   string
	}{
		"a kind that keeps no status, after a change":                     {widget(withGeneration(2)), ran(nothing), "", "changed"},
		"and after a run that came to no conclusion":                      {widget(), ran(func(st *known) { st.last = nil }), "", "again"},
		"one that came to none though the status tells of an earlier one": {widget(succeeded), ran(func(st *known) { st.last = nil }), "d2", "again"},
		"nothing reported yet":                                            {widget(), known{dirty: drift}, "", "created"},
		"another generation":                                              {widget(withGeneration(2), succeeded), ran(func(st *known) { st.dirty = drift }), "", "changed"},
		"another generation, for another manager":                         {widget(withGeneration(2), succeeded), known{}, "d2", "changed"},
		"another content of a kind without generations":                   {widget(withGeneration(0), reported(0, condition("Successful", "True"))), ran(func(st *known) { st.version.generation, st.version.content = 0, "before" }), "", "changed"},
		"the same one after a failure":                                    {widget(failed), ran(failure), "", "retry"},
		"and where the manager writes no status":                          {widget(), ran(failure), "", "retry"},
		"a failure's cause may have been mended":                          {widget(failed), ran(func(st *known) { st.dirty = drift }), "", "related: Secret a/b changed"},
		"an annotation may ask for the same once more":                    {widget(failed), ran(func(st *known) { st.version.annotations = "before" }), "", "annotation"},
		"it gets the labels of the selector once more":                    {widget(succeeded), ran(func(st *known) { st.dirty = causeSelected }), "", "selected"},
		"its period is over":                                              {widget(succeeded), ran(func(st *known) { st.due = now }), "", "period"},
		"its role asked for it":                                           {widget(succeeded), ran(func(st *known) { st.due, st.last.RequeueAfter = now, time.Second }), "", "requeue_after"},
		"it came back before its time":                                    {widget(succeeded), ran(func(st *known) { st.due = now.Add(1) }), "", "again"},
		"it has no time to come back":                                     {widget(succeeded), ran(nothing), "", "again"},
		"a kind that keeps no status, after its first run":                {widget(), ran(nothing), "", "again"},
		"another manager has left it":                                     {widget(succeeded), known{}, "d1", "restart"},
		"and with other content":                                          {widget(succeeded), known{}, "d2", "content changed"},
		"and nobody knows its content":                                    {widget(succeeded), known{}, "", "restart"},
		"another manager has left it after a failure":                     {widget(failed), known{}, "d2", "retry"},
		"a finalizer's run is deletion, whatever came first":              {widget(deleting, failed), ran(func(st *known) { st.dirty = drift }), "", "deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			watch := plainWatch()
			a := test.state.attempt(&watch, test.cr)
			if a.digest = test.digest; a.version.deleting {
				a.step = finalize
			}
			wantEqual(t, test.want, a.cause(now))
		})
	}
}

func TestPriorityOfAnAttempt(t *testing.T) {
	watch := finalizerWatch()
	observed := withStatus(map[string]any{"observedGeneration": int64(1)})
	ran := func(cr *unstructured.Unstructured, dirty string) known {
		return known{state: state{version: versionOf(&watch, cr), last: &conclusion{}}, dirty: dirty}
	}
	ours := withFinalizers(watch.Finalizer.Name)
	for name, test := range map[string]struct {
		cr    *unstructured.Unstructured
		state known
		want  slots.Priority
	}{
		"a generation that nobody has reported":                {widget(), known{}, slots.Changed},
		"one that an earlier manager has reported":             {widget(observed), known{}, slots.Normal},
		"one that has run, where the manager writes no status": {widget(), ran(widget(), ""), slots.Normal},
		"it was made dirty":                                    {widget(), ran(widget(), causeResumed), slots.Changed},
		"a deletion, also when it is tried again":              {widget(ours, deleting), ran(widget(ours, deleting), ""), slots.Urgent},
	} {
		t.Run(name, func(t *testing.T) {
			a := test.state.attempt(&watch, test.cr)
			wantEqual(t, test.want, a.priority())
		})
	}
}

// What a refused CR depends on can't make it run: it waits for its own change.
func TestARefusedCRIsNotDirty(t *testing.T) {
	b := newBench(t, plainWatch(), widget(withAnnotations(map[string]string{verbosityAnnotation: "loud"})), interceptor.Funcs{})
	b.mailbox().markDirty(causeRelated + "Secret ns/s changed")
	b.mustReconcile()
	wantEqual(t, "", b.mailbox().dirty)
	wantEqual(t, 0, len(b.runner.specs))
}

func TestTheFirstRunWhereNoStatusTellsOfEarlierOnes(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for why, test := range map[string]struct {
		created            time.Time
		noStatus, unwanted bool
		want               string
	}{
		"a kind without a status subresource":         {created: began.Add(-time.Minute), noStatus: true, want: "restart"},
		"one whose status the manager does not write": {created: began.Add(-time.Minute), unwanted: true, want: "restart"},
		"created since": {created: began.Add(time.Minute), noStatus: true, want: "created"},
		"created in the second in which the manager began":    {created: began, noStatus: true, want: "created"},
		"a status that would tell of a run, and does of none": {created: began.Add(-time.Minute), want: "created"},
	} {
		t.Run(why, func(t *testing.T) {
			cr := widget()
			cr.SetCreationTimestamp(metav1.NewTime(test.created))
			watch := plainWatch()
			watch.ManageStatus = !test.unwanted
			b := newBench(t, watch, cr, interceptor.Funcs{})
			b.NoStatus, b.Began = test.noStatus, began.Add(time.Millisecond)
			b.mustReconcile()
			cr = b.stored()
			cr.SetGeneration(2)
			if err := b.client.Update(t.Context(), cr); err != nil {
				t.Fatal(err)
			}
			b.mustReconcile()
			want := []string{"started ns/w generation 1: " + test.want, "started ns/w generation 2: changed"}
			var got []string
			for _, line := range b.journal.lines {
				if strings.HasPrefix(line, "started") {
					got = append(got, line)
				}
			}
			wantEqual(t, strings.Join(want, "\n"), strings.Join(got, "\n"))
		})
	}
}

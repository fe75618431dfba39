package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/jobevent"
	"github.com/ensign-operator/ensign/internal/watches"
)

const ourFinalizer = "g.io/finalizer"

func widget(changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	cr := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
	cr.SetGroupVersionKind(schema.GroupVersionKind{Group: "g.io", Version: "v1", Kind: "Widget"})
	cr.SetNamespace("ns")
	cr.SetName("w")
	cr.SetUID("uid-1")
	cr.SetGeneration(1)
	cr.SetResourceVersion("1")
	for _, change := range changes {
		change(cr)
	}
	return cr
}

func withUID(uid types.UID) func(*unstructured.Unstructured) {
	return func(cr *unstructured.Unstructured) { cr.SetUID(uid) }
}

func withVersion(version string) func(*unstructured.Unstructured) {
	return func(cr *unstructured.Unstructured) { cr.SetResourceVersion(version) }
}

func withFinalizers(names ...string) func(*unstructured.Unstructured) {
	return func(cr *unstructured.Unstructured) { cr.SetFinalizers(names) }
}

func withLabels(set map[string]string) func(*unstructured.Unstructured) {
	return func(cr *unstructured.Unstructured) { cr.SetLabels(set) }
}

func withAnnotations(set map[string]string) func(*unstructured.Unstructured) {
	return func(cr *unstructured.Unstructured) { cr.SetAnnotations(set) }
}

func withGeneration(generation int64) func(*unstructured.Unstructured) {
	return func(cr *unstructured.Unstructured) { cr.SetGeneration(generation) }
}

func deleting(cr *unstructured.Unstructured) {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	cr.SetDeletionTimestamp(&now)
}

func withStatus(status map[string]any) func(*unstructured.Unstructured) {
	return func(cr *unstructured.Unstructured) { cr.Object["status"] = status }
}

func plainWatch() watches.Watch {
	return watches.Watch{
		GVK: schema.GroupVersionKind{Group: "g.io", Version: "v1", Kind: "Widget"}, Selector: labels.Everything(),
		ManageStatus: true, SnakeCaseParameters: true, MarkUnsafe: true, MaxRunnerArtifacts: 20,
		Content: watches.Content{Role: "widget", RolesPath: "/roles"},
	}
}

func finalizerWatch() watches.Watch {
	w := plainWatch()
	w.Finalizer = &watches.Finalizer{Name: ourFinalizer, Content: watches.Content{Role: "bye", RolesPath: "/roles"}}
	return w
}

func selectorWatch() watches.Watch {
	w := finalizerWatch()
	w.Selector = labels.SelectorFromSet(labels.Set{"on": "yes"})
	return w
}

func TestDecide(t *testing.T) {
	on := withLabels(map[string]string{"on": "yes"})
	off := withAnnotations(map[string]string{pausedAnnotation: "true"})
	often := withAnnotations(map[string]string{periodAnnotation: "often"})
	for name, test := range map[string]struct {
		cr    *unstructured.Unstructured
		watch watches.Watch
		known known
		want  step
	}{
		"without a finalizer a CR runs at once":                      {widget(), plainWatch(), known{admitted: true}, run},
		"the finalizer comes before the first run":                   {widget(), finalizerWatch(), known{admitted: true}, addFinalizer},
		"somebody else's finalizer is not ours":                      {widget(withFinalizers("x.io/y")), finalizerWatch(), known{admitted: true}, addFinalizer},
		"a CR that holds the finalizer runs":                         {widget(withFinalizers(ourFinalizer)), finalizerWatch(), known{admitted: true}, run},
		"deletion with our finalizer finalizes":                      {widget(withFinalizers("x.io/y", ourFinalizer), deleting), finalizerWatch(), known{admitted: true}, finalize},
		"deletion without our finalizer is others' business":         {widget(withFinalizers("x.io/y"), deleting), finalizerWatch(), known{admitted: true}, skip},
		"deletion where the watch has no finalizer":                  {widget(withFinalizers("x.io/y"), deleting), plainWatch(), known{admitted: true}, skip},
		"a CR that the selector does not match":                      {widget(), selectorWatch(), known{admitted: true}, skip},
		"a CR that the selector matches":                             {widget(on, withFinalizers(ourFinalizer)), selectorWatch(), known{admitted: true}, run},
		"a CR that lost its label is finalized all the same":         {widget(withFinalizers(ourFinalizer), deleting), selectorWatch(), known{admitted: true}, finalize},
		"an unwritten result goes before everything":                 {widget(), finalizerWatch(), known{pending: true}, reportPending},
		"an unwritten result goes even before the finalizer's run":   {widget(withFinalizers(ourFinalizer), deleting), finalizerWatch(), known{pending: true}, reportPending},
		"a deleted CR never gets a finalizer that it does not have.": {widget(deleting), finalizerWatch(), known{admitted: true}, skip},
		"nothing runs in a pause, and none needs a slot":             {widget(off), finalizerWatch(), known{}, reportPaused},
		"in a pause an unwritten result is written all the same":     {widget(off), finalizerWatch(), known{pending: true}, reportPending},
		"deletion finalizes what is paused":                          {widget(off, withFinalizers(ourFinalizer), deleting), finalizerWatch(), known{admitted: true}, finalize},
		"what is paused and has no finalizer of ours just goes":      {widget(off, deleting), finalizerWatch(), known{admitted: true}, skip},
		"a pause of what is not selected is nobody's business":       {widget(off), selectorWatch(), known{admitted: true}, skip},
		"a pause that is over is none":                               {widget(withAnnotations(map[string]string{pausedAnnotation: "false"})), plainWatch(), known{admitted: true}, run},
		"nothing runs without a slot":                                {widget(), plainWatch(), known{}, comeBack},
		"not even a finalizer":                                       {widget(withFinalizers(ourFinalizer), deleting), finalizerWatch(), known{}, comeBack},
		"annotations that do not parse are refused without a slot":   {widget(often), finalizerWatch(), known{}, refuseAnnotations},
		"and keep nothing from being finalized":                      {widget(often, withFinalizers(ourFinalizer), deleting), finalizerWatch(), known{admitted: true}, finalize},
		"what needs no slot does not come back for one":              {widget(deleting), plainWatch(), known{}, skip},
		"what an earlier manager settled may rest":                   {widget(), plainWatch(), known{admitted: true, mayRest: true}, rest},
		"but not while it lacks the finalizer":                       {widget(), finalizerWatch(), known{admitted: true, mayRest: true}, addFinalizer},
		"nor when it is to be finalized":                             {widget(withFinalizers(ourFinalizer), deleting), finalizerWatch(), known{admitted: true, mayRest: true}, finalize},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(test.cr, &test.watch, test.known); got != test.want {
				t.Errorf("want step %d, got %d", test.want, got)
			}
		})
	}
}

func TestBackoffDoublesUpToItsLimit(t *testing.T) {
	var got []time.Duration
	for _, failures := range []int{1, 2, 3, 4, 5, 6, 100} {
		got = append(got, backoffAfter(failures, 20*time.Second))
	}
	want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 20 * time.Second, 20 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRequeueAfter(t *testing.T) {
	const period, backoff, wish = 10 * time.Hour, 8 * time.Second, 90 * time.Second
	outcome := func(v jobevent.Verdict) jobevent.Outcome { return jobevent.Outcome{Verdict: v} }
	for name, test := range map[string]struct {
		verdict    verdict
		generation int64
		want       time.Duration
	}{
		"a success waits for the period":              {verdict{outcome: outcome(jobevent.Succeeded), period: period}, 0, period},
		"a period of zero is none":                    {verdict{outcome: outcome(jobevent.Succeeded)}, 0, 0},
		"a role's wish goes over the period":          {verdict{outcome: outcome(jobevent.Succeeded), period: period, summary: jobevent.Summary{Requeue: wish}}, 0, wish},
		"a failure backs off, whatever the role asks": {verdict{outcome: outcome(jobevent.Failed), period: period, summary: jobevent.Summary{Requeue: wish}}, 0, backoff},
		"a failed finalizer is retried":               {verdict{outcome: outcome(jobevent.Failed), finalizing: true}, 0, backoff},
		"a finalized CR does not come back":           {verdict{outcome: outcome(jobevent.Succeeded), finalizing: true, period: period}, 0, 0},
		"a refused CR waits for its change":           {verdict{outcome: outcome(jobevent.Failed), refused: true, period: period}, 0, 0},
		"a canceled run is the next manager's":        {verdict{outcome: outcome(jobevent.Canceled), period: period}, 0, 0},
		"a late verdict makes room for the new one":   {verdict{edition: edition{generation: 1}, outcome: outcome(jobevent.Succeeded), period: period}, 2, soon},
	} {
		t.Run(name, func(t *testing.T) {
			if got := requeueAfter(&test.verdict, test.generation, backoff); got != test.want {
				t.Errorf("want %s, got %s", test.want, got)
			}
		})
	}
}

func TestTriggerOf(t *testing.T) {
	condition := func(kind, status string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": "R"}
	}
	reported := func(generation int64, conditions ...any) func(*unstructured.Unstructured) {
		return withStatus(map[string]any{"observedGeneration": generation, "conditions": conditions})
	}
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	settled := widget(withStatus(map[string]any{"observedGeneration": int64(1), "contentDigest": "d1", "conditions": []any{condition("Successful", "True")}}))
	for name, test := range map[string]struct {
		cr   *unstructured.Unstructured
		c    circumstances
		want string
	}{
		"nothing reported yet":                             {widget(), circumstances{}, "created"},
		"another generation":                               {widget(withGeneration(3), reported(2, condition("Successful", "True"))), circumstances{met: true, related: "Secret a/b changed"}, "changed"},
		"the same one after a failure":                     {widget(reported(1, condition("Failure", "True"))), circumstances{met: true, again: true}, "retry"},
		"a failure's cause may have been mended":           {widget(reported(1, condition("Failure", "True"))), circumstances{met: true, again: true, related: "Secret a/b changed"}, "related: Secret a/b changed"},
		"an annotation may ask for the same once more":     {widget(reported(1, condition("Failure", "True"))), circumstances{met: true, again: true, annotated: true}, "annotation"},
		"its period is over":                               {settled, circumstances{met: true, again: true, due: due{"period", first}, now: first}, "period"},
		"its role asked for it":                            {settled, circumstances{met: true, again: true, due: due{"requeue_after", first}, now: first}, "requeue_after"},
		"it came back before its time":                     {settled, circumstances{met: true, again: true, due: due{"period", first}, now: first.Add(-1)}, "again"},
		"a kind that keeps no status, after its first run": {widget(), circumstances{met: true, again: true}, "again"},
		"another manager has left it":                      {settled, circumstances{digest: "d1"}, "restart"},
		"and with other content":                           {settled, circumstances{digest: "d2"}, "content changed"},
		"what it was left with is not known":               {settled, circumstances{}, "restart"},
		"a finalizer's run is deletion":                    {widget(reported(1, condition("Failure", "True"))), circumstances{finalizing: true}, "deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := triggerOf(test.cr, test.c); got != test.want {
				t.Errorf("want %q, got %q", test.want, got)
			}
		})
	}
}

package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

func TestPeriodOf(t *testing.T) {
	defaults := Defaults{ReconcilePeriod: time.Hour}
	ownWatch, chartWatch := plainWatch(), plainWatch()
	ownWatch.ReconcilePeriod, chartWatch.Chart = time.Minute, &watches.Chart{}
	for name, test := range map[string]struct {
		watch       watches.Watch
		annotations map[string]string
		want        time.Duration
	}{
		"the flag, where nobody says more":               {plainWatch(), nil, time.Hour},
		"the watch goes over the flag":                   {ownWatch, nil, time.Minute},
		"the annotation goes over the watch":             {ownWatch, map[string]string{periodAnnotation: "90s"}, 90 * time.Second},
		"a short period is stretched to 10 s":            {plainWatch(), map[string]string{periodAnnotation: "1ms"}, 10 * time.Second},
		"0s is no period":                                {plainWatch(), map[string]string{periodAnnotation: "0s"}, 0},
		"a pause may be over":                            {plainWatch(), map[string]string{pausedAnnotation: "false"}, time.Hour},
		"an unknown annotation of ours is fine":          {plainWatch(), map[string]string{watches.AnsibleAnnotations + "later": "x"}, time.Hour},
		"a chart's CR has the annotations of a chart":    {chartWatch, map[string]string{watches.ChartAnnotations + periodSuffix: "90s"}, 90 * time.Second},
		"and those of every kind below the other prefix": {chartWatch, map[string]string{periodAnnotation: "90s", pausedAnnotation: "false"}, 90 * time.Second},
		"its own go over those":                          {chartWatch, map[string]string{periodAnnotation: "90s", watches.ChartAnnotations + periodSuffix: "80s"}, 80 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{Watch: test.watch, Defaults: defaults}
			got, err := r.periodOf(widget(withAnnotations(test.annotations)))
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, test.want, got)
		})
	}
}

func TestAnnotationsThatDoNotParseAreAllNamed(t *testing.T) {
	r := &Reconciler{Watch: plainWatch(), Defaults: Defaults{ReconcilePeriod: time.Hour}}
	got, err := r.periodOf(widget(withAnnotations(map[string]string{periodAnnotation: "often", pausedAnnotation: "maybe"})))
	if err == nil {
		t.Fatal("want an error")
	}
	for _, text := range []string{periodAnnotation, `"often"`, pausedAnnotation, `"maybe"`} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not name %s: %v", text, err)
		}
	}
	if got != time.Hour {
		t.Errorf("a finalizer's run goes on with a period of an hour, got %s", got)
	}
	for _, text := range []string{"True", "yes", "1", ""} {
		if _, err := r.periodOf(widget(withAnnotations(map[string]string{pausedAnnotation: text}))); err == nil || !strings.Contains(err.Error(), pausedAnnotation) {
			t.Errorf("a pause of %q was taken: %v", text, err)
		}
	}
	for _, text := range []string{"-5s", "5", ""} {
		if _, err := r.periodOf(widget(withAnnotations(map[string]string{periodAnnotation: text}))); err == nil {
			t.Errorf("a period of %q was taken", text)
		}
	}
}

func TestTheStatusSaysWhichRequestWasAnswered(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.mustReconcile()
	wantEqual(t, "", status.Request(b.stored()))
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		if len(b.runner.specs) == 2 {
			b.annotate(requestedAnnotation, "during the run of first")
		}
		return fail(ctx, spec)
	}
	b.annotate(requestedAnnotation, "first")
	b.mustReconcile()
	wantEqual(t, "first", status.Request(b.stored()))
	b.mustReconcile()
	wantEqual(t, "during the run of first", status.Request(b.stored()))

	b.runner.run = func(context.Context, runner.Spec) runner.Result {
		return runner.Result{Outcome: content.Outcome{Verdict: content.Canceled, Reason: content.ReasonCanceled}}
	}
	b.annotate(requestedAnnotation, "canceled")
	b.mustReconcile()
	wantEqual(t, "during the run of first", status.Request(b.stored()))
}

// People take another prefix for that of the CR's kind of content.
func TestAnnotationsBelowAnyPrefixCount(t *testing.T) {
	watch := plainWatch()
	b := newBench(t, watch, widget(), interceptor.Funcs{})
	other := func(suffix string) string { return watches.ChartAnnotations + suffix }
	b.mustReconcile()
	request := func(name, value string, runs int) {
		t.Helper()
		b.annotate(name, value)
		b.mustReconcile()
		wantEqual(t, runs, len(b.runner.specs))
		wantEqual(t, value, status.Request(b.stored()))
		b.mustReconcile()
		wantEqual(t, runs, len(b.runner.specs))
		wantEqual(t, value, status.Request(b.stored()))
	}
	request(other(requestedSuffix), "first", 2)
	request(requestedAnnotation, "second", 3)
	request(other(requestedSuffix), "third", 4)
	request(watches.CustomAnnotations+requestedSuffix, "fourth", 5)
	b.annotate(other(pausedSuffix), "true")
	b.mustReconcile()
	wantEqual(t, 5, len(b.runner.specs))
	wantEqual(t, "False/Paused", b.conditions()["Running"])
	if !abandoned(&watch, widget(deleting, withAnnotations(map[string]string{other(abandonSuffix): "true"}))) {
		t.Error("the CR is not given up")
	}
	own := watches.Watch{Custom: &watches.ContentKind{AnnotationPrefix: "a.b/"}}
	if paused(&own, widget(withAnnotations(map[string]string{pausedAnnotation: "true"}))) {
		t.Error("a program's own prefix is not the only one")
	}
}

func TestWhichRequestIsShown(t *testing.T) {
	for why, test := range map[string]struct{ requests, answered, shown, want string }{
		"none":                              {"", "", "", ""},
		"the watch's own":                   {"a", "", "", "a"},
		"again":                             {"a", "a", "a", "a"},
		"the one that is new":               {"a\x00b", "a", "a", "b"},
		"the own one, if both are":          {"a\x00b", "", "", "a"},
		"the other, if that was answered":   {"a\x00b", "", "a", "b"},
		"what stands there, if none is":     {"a\x00b", "a\x00b", "b", ""},
		"what stands there, if one is gone": {"\x00b", "a\x00b", "a", ""},
	} {
		if got := answers(test.requests, test.answered, test.shown); got != test.want {
			t.Errorf("%s: got %q", why, got)
		}
	}
}

func TestARequestThatIsRefusedIsAnswered(t *testing.T) {
	b := newBench(t, plainWatch(), widget(withAnnotations(map[string]string{periodAnnotation: "often", requestedAnnotation: "now"})), interceptor.Funcs{})
	b.mustReconcile()
	wantEqual(t, "True/InvalidAnnotation", b.conditions()["Failure"])
	wantEqual(t, "now", status.Request(b.stored()))
}

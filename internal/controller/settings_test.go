package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/watches"
)

func TestSettings(t *testing.T) {
	defaults := Defaults{ReconcilePeriod: time.Hour, Verbosity: 1, MaxVerbosity: 3}
	five := 5
	ownWatch := plainWatch()
	ownWatch.ReconcilePeriod, ownWatch.Verbosity, ownWatch.MaxRunnerArtifacts = time.Minute, &five, 7
	for name, test := range map[string]struct {
		watch       watches.Watch
		annotations map[string]string
		want        settings
	}{
		"the flags, where nobody says more":      {plainWatch(), nil, settings{time.Hour, 20, 1}},
		"the watch goes over the flags":          {ownWatch, nil, settings{time.Minute, 7, 5}},
		"annotations go over the watch":          {ownWatch, map[string]string{periodAnnotation: "90s", maxArtifactsAnnotation: "0", verbosityAnnotation: "2"}, settings{90 * time.Second, 0, 2}},
		"a short period is stretched to 10 s":    {plainWatch(), map[string]string{periodAnnotation: "1ms"}, settings{10 * time.Second, 20, 1}},
		"0s is no period":                        {plainWatch(), map[string]string{periodAnnotation: "0s"}, settings{0, 20, 1}},
		"a CR cannot ask for more than the cap":  {plainWatch(), map[string]string{verbosityAnnotation: "7"}, settings{time.Hour, 20, 3}},
		"the cap is for annotations only":        {ownWatch, map[string]string{"other": "x"}, settings{time.Minute, 7, 5}},
		"verbosity may be silenced by a zero":    {ownWatch, map[string]string{verbosityAnnotation: "0"}, settings{time.Minute, 7, 0}},
		"artifacts may be as many as one likes":  {plainWatch(), map[string]string{maxArtifactsAnnotation: "20000"}, settings{time.Hour, 20000, 1}},
		"a pause may be over":                    {plainWatch(), map[string]string{pausedAnnotation: "false"}, settings{time.Hour, 20, 1}},
		"an unknown annotation of ours is fine.": {plainWatch(), map[string]string{annotationPrefix + "later": "x"}, settings{time.Hour, 20, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{Watch: test.watch, Defaults: defaults}
			got, err := r.settingsOf(widget(withAnnotations(test.annotations)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(settings{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnnotationsThatDoNotParseAreAllNamed(t *testing.T) {
	r := &Reconciler{Watch: plainWatch(), Defaults: Defaults{ReconcilePeriod: time.Hour, Verbosity: 1, MaxVerbosity: 3}}
	got, err := r.settingsOf(widget(withAnnotations(map[string]string{
		periodAnnotation: "often", maxArtifactsAnnotation: "-1", verbosityAnnotation: "8",
	})))
	if err == nil {
		t.Fatal("want an error")
	}
	for _, text := range []string{periodAnnotation, `"often"`, maxArtifactsAnnotation, `"-1"`, verbosityAnnotation, `"8"`} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not name %s: %v", text, err)
		}
	}
	if want := (settings{time.Hour, 20, 1}); got != want {
		t.Errorf("a finalizer's run goes on with %+v, got %+v", want, got)
	}
	for _, text := range []string{"True", "yes", "1", ""} {
		if _, err := r.settingsOf(widget(withAnnotations(map[string]string{pausedAnnotation: text}))); err == nil || !strings.Contains(err.Error(), pausedAnnotation) {
			t.Errorf("a pause of %q was taken: %v", text, err)
		}
	}
	for _, text := range []string{"-5s", "5", ""} {
		if _, err := r.settingsOf(widget(withAnnotations(map[string]string{periodAnnotation: text}))); err == nil {
			t.Errorf("a period of %q was taken", text)
		}
	}
}

package engine

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/watches"
)

const (
	maxArtifactsAnnotation = watches.AnsibleAnnotations + "max-runner-artifacts"
	verbosityAnnotation    = watches.AnsibleAnnotations + "verbosity"
)

func annotated(annotations map[string]string) *unstructured.Unstructured {
	cr := &unstructured.Unstructured{Object: map[string]any{}}
	cr.SetAnnotations(annotations)
	return cr
}

func TestSettings(t *testing.T) {
	five := 5
	plain := watches.Watch{MaxRunnerArtifacts: 20}
	own := watches.Watch{MaxRunnerArtifacts: 7, Verbosity: &five}
	for name, test := range map[string]struct {
		watch       watches.Watch
		annotations map[string]string
		want        settings
	}{
		"the flags, where nobody says more":     {plain, nil, settings{20, 1}},
		"the watch goes over the flags":         {own, nil, settings{7, 5}},
		"annotations go over the watch":         {own, map[string]string{maxArtifactsAnnotation: "0", verbosityAnnotation: "2"}, settings{0, 2}},
		"a CR cannot ask for more than the cap": {plain, map[string]string{verbosityAnnotation: "7"}, settings{20, 3}},
		"the cap is for annotations only":       {own, map[string]string{"other": "x"}, settings{7, 5}},
		"verbosity may be silenced by a zero":   {own, map[string]string{verbosityAnnotation: "0"}, settings{7, 0}},
		"artifacts may be as many as one likes": {plain, map[string]string{maxArtifactsAnnotation: "20000"}, settings{20000, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			e := &Engine{Watch: test.watch, Defaults: Defaults{Verbosity: 1, MaxVerbosity: 3}}
			got, err := e.settingsOf(annotated(test.annotations))
			if err != nil || got != test.want {
				t.Errorf("want %+v, got %+v, %v", test.want, got, err)
			}
		})
	}
}

// FuzzSettings lets a CR's author write what he likes into the annotations that steer its
// runs. Nothing takes him beyond what the contract gives him, and what he is told fits a
// condition.
func FuzzSettings(f *testing.F) {
	f.Add("5", "3", 3)
	f.Add("-1", "8", 2)
	f.Fuzz(func(t *testing.T, artifacts, verbosity string, limit int) {
		limit = max(limit, 0) % 8
		annotations := map[string]string{}
		for name, text := range map[string]string{maxArtifactsAnnotation: artifacts, verbosityAnnotation: verbosity} {
			if text != "absent" {
				annotations[name] = text
			}
		}
		e := &Engine{Watch: watches.Watch{MaxRunnerArtifacts: 20}, Defaults: Defaults{Verbosity: 1, MaxVerbosity: limit}}
		got, err := e.settingsOf(annotated(annotations))
		without, _ := e.settingsOf(annotated(nil))
		text := ""
		if err != nil {
			text = err.Error()
		}
		if len(text) > 4<<10 || !utf8.ValidString(text) || strings.ContainsFunc(text, unfit) {
			t.Errorf("what is wrong takes %d bytes: %.300q", len(text), text)
		}
		for name, one := range map[string]struct {
			usable         bool
			got, with, own int64
		}{
			maxArtifactsAnnotation: {between(artifacts, 0, math.MaxInt32), int64(got.maxArtifacts), number(artifacts), int64(without.maxArtifacts)},
			verbosityAnnotation:    {between(verbosity, 0, 7), int64(got.verbosity), min(number(verbosity), int64(limit)), int64(without.verbosity)},
		} {
			_, given := annotations[name]
			if !given || !one.usable {
				one.with = one.own
			}
			if one.got != one.with {
				t.Errorf("%s: %q gives %d, want %d", name, annotations[name], one.got, one.with)
			}
			if faulty := given && !one.usable; faulty != strings.Contains(text, name) {
				t.Errorf("%s: %q, and the error is %q", name, annotations[name], text)
			}
		}
	})
}

func unfit(r rune) bool { return r != '\n' && !strconv.IsPrint(r) }

func between(text string, low, high int64) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && low <= n && n <= high
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

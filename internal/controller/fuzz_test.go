package controller

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzSettings lets a CR's author write what he likes into the annotations that
// steer its runs. Nothing takes him beyond what the contract gives him, and what
// he is told fits a condition.
func FuzzSettings(f *testing.F) {
	f.Add("30s", "5", "3", 3, int64(time.Hour))
	f.Fuzz(func(t *testing.T, period, artifacts, verbosity string, limit int, ofWatch int64) {
		limit = max(limit, 0) % 8
		watch := plainWatch()
		watch.ReconcilePeriod = time.Duration(max(ofWatch, 0))
		annotations := map[string]string{}
		for name, text := range map[string]string{periodAnnotation: period, maxArtifactsAnnotation: artifacts, verbosityAnnotation: verbosity} {
			if text != "absent" {
				annotations[name] = text
			}
		}
		r := &Reconciler{Watch: watch, Defaults: Defaults{ReconcilePeriod: time.Minute, Verbosity: 1, MaxVerbosity: limit}}
		got, err := r.settingsOf(widget(withAnnotations(annotations)))
		without, _ := r.settingsOf(widget())
		text := ""
		if err != nil {
			text = err.Error()
		}
		if len(text) > 4<<10 || !utf8.ValidString(text) || strings.ContainsFunc(text, unfit) {
			t.Errorf("what is wrong takes %d bytes: %.300q", len(text), text)
		}
		duration, errPeriod := time.ParseDuration(period)
		want := max(duration, 10*time.Second)
		if duration == 0 {
			want = 0
		}
		for name, one := range map[string]struct {
			usable         bool
			got, with, own int64
		}{
			periodAnnotation:       {errPeriod == nil && duration >= 0, int64(got.period), int64(want), int64(without.period)},
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

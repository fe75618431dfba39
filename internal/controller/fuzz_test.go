package controller

import (
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzPeriod lets a CR's author write what he likes into the annotation that sets the pause
// between its runs. Nothing takes him beyond what the contract gives him, and what he is told
// fits a condition.
func FuzzPeriod(f *testing.F) {
	f.Add("30s", int64(time.Hour))
	f.Fuzz(func(t *testing.T, period string, ofWatch int64) {
		watch := plainWatch()
		watch.ReconcilePeriod = time.Duration(max(ofWatch, 0))
		r := &Reconciler{Watch: watch, Defaults: Defaults{ReconcilePeriod: time.Minute}}
		got, err := r.periodOf(widget(withAnnotations(map[string]string{periodAnnotation: period})))
		want, _ := r.periodOf(widget())
		duration, errPeriod := time.ParseDuration(period)
		usable := errPeriod == nil && duration >= 0
		switch {
		case usable && duration == 0:
			want = 0
		case usable:
			want = max(duration, 10*time.Second)
		}
		if got != want {
			t.Errorf("%q gives %s, want %s", period, got, want)
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if usable == strings.Contains(text, periodAnnotation) {
			t.Errorf("%q, and the error is %q", period, text)
		}
		if len(text) > 4<<10 || !utf8.ValidString(text) || strings.ContainsFunc(text, unfit) {
			t.Errorf("what is wrong takes %d bytes: %.300q", len(text), text)
		}
	})
}

func unfit(r rune) bool { return r != '\n' && !strconv.IsPrint(r) }

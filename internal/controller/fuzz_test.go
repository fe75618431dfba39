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

// FuzzRequests lets a CR's author ask for runs and for their end with whatever text. Each new request is seen, none
// is seen twice, and the answer is one of them.
func FuzzRequests(f *testing.F) {
	f.Add("a", "b", "a", "")
	f.Add("a\x00b", "", "\x00", "b")
	f.Fuzz(func(t *testing.T, own, other, before, shown string) {
		watch := plainWatch()
		names := watch.AnnotationNames(requestedSuffix)
		now := requestsOf(&watch, widget(withAnnotations(map[string]string{names[0]: own, names[1]: other})))
		for _, request := range newRequests(now, before) {
			if request == "" || !strings.Contains(own+requestsSeparator+other, request) {
				t.Errorf("%q is requested by %q and %q", request, own, other)
			}
		}
		if again := newRequests(now, now); len(again) > 0 {
			t.Errorf("%q is new after %q", again, now)
		}
		if answer := answers(now, before, shown); answer != "" && !strings.Contains(now, answer) {
			t.Errorf("%q answers %q", answer, now)
		}
		if without := requestsOf(&watch, widget()); without != "" {
			t.Errorf("%q without a request", without)
		}
		canceled := widget(withAnnotations(map[string]string{watch.AnnotationNames(cancelSuffix)[0]: own}))
		if cancels(&watch, widget(), canceled) != (own != "") || cancels(&watch, canceled, canceled) || cancels(&watch, nil, canceled) {
			t.Errorf("%q does not cancel once", own)
		}
	})
}

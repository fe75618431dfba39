package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/watches"
)

// The annotations with which a CR of any kind of content controls its own runs, without one of the
// watch's prefixes. A change of reconcile-requested-at is enough to make content run.
const (
	periodSuffix    = "reconcile-period"
	pausedSuffix    = "paused"
	requestedSuffix = "reconcile-requested-at"
	cancelSuffix    = "cancel-requested-at"
	abandonSuffix   = "abandon"
)

// unknownAnnotations returns, sorted, the CR's annotations that begin with a prefix of the watch
// and mean nothing, without those that it had before.
func unknownAnnotations(watch *watches.Watch, before, cr *unstructured.Unstructured) []string {
	var found []string
	had := map[string]string{}
	if before != nil {
		had = before.GetAnnotations()
	}
	prefixes := watch.Prefixes()
	for name := range cr.GetAnnotations() {
		ours := slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if _, old := had[name]; !old && ours && !watch.IsKnownAnnotation(name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// minPeriod is the shortest period that a CR can set, so that one CR cannot fill all slots.
const minPeriod = 10 * time.Second

// periodOf returns the pause between two runs of the CR: its annotation over the watch over
// the default; 0 is none. With an error, which names every annotation that does not parse,
// it is the period without the annotation.
func (r *Reconciler) periodOf(cr *unstructured.Unstructured) (time.Duration, error) {
	return Period(&r.Watch, r.Defaults.ReconcilePeriod, cr)
}

// Period is periodOf for a manager whose --reconcile-period is otherwise.
func Period(watch *watches.Watch, otherwise time.Duration, cr *unstructured.Unstructured) (time.Duration, error) {
	period := otherwise
	if watch.ReconcilePeriod > 0 {
		period = watch.ReconcilePeriod
	}
	annotations := cr.GetAnnotations()
	var errs []error
	for _, name := range slices.Backward(watch.AnnotationNames(periodSuffix)) { // The watch's own counts.
		errs = append(errs, readPeriod(name, annotations, &period))
	}
	for _, name := range watch.AnnotationNames(pausedSuffix) {
		errs = append(errs, checkPaused(name, annotations))
	}
	return period, errors.Join(errs...)
}

// paused reports whether nothing is to be run for the CR but its finalizer.
func paused(watch *watches.Watch, cr *unstructured.Unstructured) bool {
	if cr.GetDeletionTimestamp() != nil {
		return false
	}
	return saysTrue(watch, cr, pausedSuffix) != "" || watch.Paused != nil && watch.Paused(cr.DeepCopy())
}

// saysTrue returns the name of the annotation that says true; "" if none does.
func saysTrue(watch *watches.Watch, cr *unstructured.Unstructured, suffix string) string {
	annotations := cr.GetAnnotations()
	for _, name := range watch.AnnotationNames(suffix) {
		if annotations[name] == "true" {
			return name
		}
	}
	return ""
}

// requestsOf returns the requests of a CR, one for each name of the annotation. A CR that has only
// the watch's own has its value.
func requestsOf(watch *watches.Watch, cr *unstructured.Unstructured) string {
	annotations := cr.GetAnnotations()
	var all []string
	for _, name := range watch.AnnotationNames(requestedSuffix) {
		all = append(all, annotations[name])
	}
	return strings.TrimRight(strings.Join(all, requestsSeparator), requestsSeparator)
}

// requestsSeparator cannot stand in an annotation of a CR that came as JSON but by an escape; it
// then only splits that request.
const requestsSeparator = "\x00"

// newRequests returns the requests that differ from those before, the watch's own first.
func newRequests(now, before string) (found []string) {
	old := strings.Split(before, requestsSeparator)
	for i, request := range strings.Split(now, requestsSeparator) {
		if request != "" && (i >= len(old) || old[i] != request) {
			found = append(found, request)
		}
	}
	return found
}

// answers returns the request that the status shows as answered by a run that has seen all; "" if
// the status shows it already. A run answers all, and the status has room for one: the request that
// is new since the last answer, because somebody waits for it.
func answers(requests, answered, shown string) string {
	if !strings.Contains(requests, requestsSeparator) {
		return requests
	}
	for _, request := range newRequests(requests, answered) {
		if request != shown {
			return request
		}
	}
	return ""
}

// abandoned reports whether the CR is to go although its finalizer has not succeeded.
func abandoned(watch *watches.Watch, cr *unstructured.Unstructured) bool {
	return saysTrue(watch, cr, abandonSuffix) != "" && cr.GetDeletionTimestamp() != nil
}

// cancels reports whether an update asks for the end of the CR's run: an annotation has a new value.
// before is nil for a CR that replaced another one.
func cancels(watch *watches.Watch, before, after *unstructured.Unstructured) bool {
	if before == nil {
		return false
	}
	had, has := before.GetAnnotations(), after.GetAnnotations()
	return slices.ContainsFunc(watch.AnnotationNames(cancelSuffix), func(name string) bool { return has[name] != "" && has[name] != had[name] })
}

func checkPaused(name string, annotations map[string]string) error {
	switch text, ok := annotations[name]; {
	case !ok, text == "true", text == "false":
		return nil
	default:
		return fmt.Errorf("annotation %s: %s is neither true nor false", name, watches.Quoted(text))
	}
}

func readPeriod(name string, annotations map[string]string, into *time.Duration) error {
	text, ok := annotations[name]
	if !ok {
		return nil
	}
	period, err := time.ParseDuration(text)
	if err != nil || period < 0 {
		return fmt.Errorf("annotation %s: invalid duration %s: use for example 30s, 10m or 1h30m, or 0s for none", name, watches.Quoted(text))
	}
	if period > 0 {
		period = max(period, minPeriod)
	}
	*into = period
	return nil
}

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

// The annotations with which a CR of any kind of content steers its own runs, without the
// watch's prefix. A change of reconcile-requested-at is enough to make content run.
const (
	periodSuffix    = "reconcile-period"
	pausedSuffix    = "paused"
	requestedSuffix = "reconcile-requested-at"
	abandonSuffix   = "abandon"
)

// unknownAnnotations returns, sorted, the CR's annotations that begin with the watch's prefix
// and mean nothing, without those that it had before.
func unknownAnnotations(watch *watches.Watch, before, cr *unstructured.Unstructured) []string {
	var found []string
	had := map[string]string{}
	if before != nil {
		had = before.GetAnnotations()
	}
	for name := range cr.GetAnnotations() {
		if _, old := had[name]; !old && strings.HasPrefix(name, watch.AnnotationPrefix()) && !slices.Contains(watch.Annotations(), name) {
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
	prefix, annotations := watch.AnnotationPrefix(), cr.GetAnnotations()
	err := errors.Join(
		readPeriod(prefix+periodSuffix, annotations, &period),
		checkPaused(prefix+pausedSuffix, annotations),
	)
	return period, err
}

// paused reports whether nothing is to be run for the CR but its finalizer.
func paused(watch *watches.Watch, cr *unstructured.Unstructured) bool {
	if cr.GetDeletionTimestamp() != nil {
		return false
	}
	return pausedByAnnotation(watch, cr) || watch.Paused != nil && watch.Paused(cr.DeepCopy())
}

func pausedByAnnotation(watch *watches.Watch, cr *unstructured.Unstructured) bool {
	return cr.GetAnnotations()[watch.AnnotationPrefix()+pausedSuffix] == "true"
}

// abandoned reports whether the CR is to go although its finalizer has not succeeded.
func abandoned(watch *watches.Watch, cr *unstructured.Unstructured) bool {
	return cr.GetAnnotations()[watch.AnnotationPrefix()+abandonSuffix] == "true" && cr.GetDeletionTimestamp() != nil
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
		return fmt.Errorf("annotation %s: %s is no duration: write for example 30s, 10m or 1h30m, or 0s for none", name, watches.Quoted(text))
	}
	if period > 0 {
		period = max(period, minPeriod)
	}
	*into = period
	return nil
}

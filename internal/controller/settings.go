package controller

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// annotationPrefix begins the annotations with which a CR steers its own runs.
const annotationPrefix = "ansible.sdk.operatorframework.io/"

const (
	periodAnnotation       = annotationPrefix + "reconcile-period"
	maxArtifactsAnnotation = annotationPrefix + "max-runner-artifacts"
	verbosityAnnotation    = annotationPrefix + "verbosity"
	pausedAnnotation       = annotationPrefix + "paused"
	requestedAnnotation    = annotationPrefix + "reconcile-requested-at"
)

// knownAnnotations are all that begin with the prefix and mean something.
func knownAnnotations() []string {
	return []string{periodAnnotation, maxArtifactsAnnotation, verbosityAnnotation, pausedAnnotation, requestedAnnotation}
}

// unknownAnnotations returns, sorted, the CR's annotations that begin with the prefix and
// mean nothing, without those that it had before.
func unknownAnnotations(before, cr *unstructured.Unstructured) []string {
	var found []string
	had := map[string]string{}
	if before != nil {
		had = before.GetAnnotations()
	}
	for name := range cr.GetAnnotations() {
		if _, old := had[name]; !old && strings.HasPrefix(name, annotationPrefix) && !slices.Contains(knownAnnotations(), name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// minPeriod keeps a CR from taking the operator for itself.
const minPeriod = 10 * time.Second

// settings are what may differ from CR to CR.
type settings struct {
	period       time.Duration // 0 is none
	maxArtifacts int           // 0 keeps all
	verbosity    int
}

// settingsOf returns the CR's settings: its annotations over the watch over the
// defaults. With an error, which names every annotation that does not parse,
// those have the value that they would have without it.
func (r *Reconciler) settingsOf(cr *unstructured.Unstructured) (settings, error) {
	s := settings{period: r.Defaults.ReconcilePeriod, maxArtifacts: r.Watch.MaxRunnerArtifacts, verbosity: r.Defaults.Verbosity}
	if r.Watch.ReconcilePeriod > 0 {
		s.period = r.Watch.ReconcilePeriod
	}
	if r.Watch.Verbosity != nil {
		s.verbosity = *r.Watch.Verbosity
	}
	return s, s.read(cr.GetAnnotations(), r.Defaults.MaxVerbosity)
}

func (s *settings) read(annotations map[string]string, maxVerbosity int) error {
	return errors.Join(
		s.readPeriod(annotations),
		readInt(annotations, maxArtifactsAnnotation, bounds{0, math.MaxInt32}, &s.maxArtifacts),
		s.readVerbosity(annotations, maxVerbosity),
		checkPaused(annotations),
	)
}

// paused reports whether nothing is to be run for the CR but its finalizer.
func paused(cr *unstructured.Unstructured) bool {
	return cr.GetAnnotations()[pausedAnnotation] == "true" && cr.GetDeletionTimestamp() == nil
}

func checkPaused(annotations map[string]string) error {
	switch text, ok := annotations[pausedAnnotation]; {
	case !ok, text == "true", text == "false":
		return nil
	default:
		return fmt.Errorf("annotation %s: %s is neither true nor false", pausedAnnotation, quoted(text))
	}
}

func (s *settings) readPeriod(annotations map[string]string) error {
	text, ok := annotations[periodAnnotation]
	if !ok {
		return nil
	}
	period, err := time.ParseDuration(text)
	if err != nil || period < 0 {
		return fmt.Errorf("annotation %s: %s is no duration: write for example 30s, 10m or 1h30m, or 0s for none", periodAnnotation, quoted(text))
	}
	if period > 0 {
		period = max(period, minPeriod)
	}
	s.period = period
	return nil
}

func (s *settings) readVerbosity(annotations map[string]string, limit int) error {
	asked := -1
	if err := readInt(annotations, verbosityAnnotation, bounds{0, 7}, &asked); err != nil {
		return err
	}
	if asked >= 0 {
		s.verbosity = min(asked, limit)
	}
	return nil
}

type bounds struct{ low, high int }

func (b bounds) String() string {
	if b.high == math.MaxInt32 {
		return fmt.Sprintf("of %d or more", b.low)
	}
	return fmt.Sprintf("from %d to %d", b.low, b.high)
}

func readInt(annotations map[string]string, name string, allowed bounds, value *int) error {
	text, ok := annotations[name]
	if !ok {
		return nil
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < allowed.low || number > allowed.high {
		return fmt.Errorf("annotation %s: %s is no whole number %s", name, quoted(text), allowed)
	}
	*value = number
	return nil
}

// quoted keeps an annotation, which may have 256 KiB, from filling the status.
func quoted(text string) string {
	const limit = 64
	if len(text) > limit {
		return strconv.Quote(text[:limit]) + "…"
	}
	return strconv.Quote(text)
}

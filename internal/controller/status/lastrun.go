package status

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/pkg/content"
)

// runKey is the key of the status for the last run that ended. Its object has the keys
// below; one that is unknown is not there.
const (
	runKey     = "contentRun"
	endedKey   = "endedAt"
	nextKey    = "nextAt"
	versionKey = "version"
	contentKey = "digest"
)

// LastRun describes the last run that ended, however it ended.
type LastRun struct {
	// Ended is zero if no run has ended.
	Ended time.Time
	// Next is when content runs again although nothing changes, where that is not after the
	// CR's period: after a failure, or because the content asked for it. Zero: not so.
	Next time.Time
	// Version is that of the content that ran.
	Version content.Version
}

// WithRun adds the run that the report is about. Where nothing has run, Ended is zero: then the
// status keeps the run before, without its Next.
func (r Report) WithRun(run LastRun) Report {
	if run.Ended.IsZero() {
		r.nothingRan = true
		return r
	}
	value := map[string]any{}
	for key, text := range map[string]string{
		endedKey: timeText(run.Ended), nextKey: timeText(run.Next),
		versionKey: bounded(run.Version.Name, maxReason), contentKey: run.Version.Digest,
	} {
		if text != "" {
			value[key] = text
		}
	}
	r.ran, r.contentDigest = true, run.Version.Digest
	return r.with(runKey, value)
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// ReadRun returns the last run that ended, as the status of obj has it. Where a later run has not
// written it, because its manager is of an earlier version or the kind's schema refused or dropped
// it, the conditions tell the end, and nothing is known of the content.
func ReadRun(obj *unstructured.Unstructured) LastRun {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", runKey)
	fields, _ := value.(map[string]any)
	text := func(key string) string { s, _ := fields[key].(string); return s }
	at := func(key string) time.Time { t, _ := time.Parse(time.RFC3339, text(key)); return t } // Zero if the text is not a time.
	run := LastRun{Ended: at(endedKey), Next: at(nextKey), Version: content.Version{Name: text(versionKey), Digest: text(contentKey)}}
	stopped, refused := stoppedAt(obj)
	switch ended := completed(obj); {
	case ended.Sub(run.Ended) > clockSkew:
		return LastRun{Ended: ended}
	case (refused || run.Ended.IsZero()) && stopped.After(run.Ended):
		return LastRun{Ended: stopped}
	case !run.Next.After(run.Ended):
		run.Next = time.Time{}
	}
	return run
}

// stoppedAt returns when Running became False, if that was at the end of a run that did not
// succeed; zero if not so. refused is true if the schema refused the run's result.
func stoppedAt(obj *unstructured.Unstructured) (at time.Time, refused bool) {
	running, failure := Read(obj, Running), Read(obj, Failure)
	refusal := failure.Reason == string(content.ReasonInvalidSpec) || failure.Reason == string(content.ReasonInvalidAnnotation)
	switch content.Reason(running.Reason) {
	case ReasonUnwritable:
		return running.LastTransitionTime.Time, true
	case content.ReasonFailed, content.ReasonCanceled:
		if running.Status == "False" && !refusal {
			return running.LastTransitionTime.Time, false
		}
	}
	return time.Time{}, false
}

// clockSkew is how much later than the end of a run its completion may be: it is written to the
// microsecond, and the end to the second.
const clockSkew = time.Second

// completed returns the latest end of a run that the ansibleResult of a condition has; the zero
// time if none has one, as with charts.
func completed(obj *unstructured.Unstructured) (last time.Time) {
	for _, kind := range []Type{Running, Successful, Failure} {
		_, found := find(conditionsOf(obj), kind)
		result, _ := found["ansibleResult"].(map[string]any)
		text, _ := result["completion"].(string)
		if ended, err := time.Parse(completionFormat, text); err == nil && ended.After(last) {
			last = ended
		}
	}
	return last
}

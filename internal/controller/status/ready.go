package status

import (
	"cmp"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ensign-operator/ensign/pkg/content"
)

// The conditions by which kstatus judges an object, which looks at Reconciling and Stalled before Ready.
const (
	// Ready is True if the latest generation succeeded. Content may write it in the manager's place.
	Ready Type = "Ready"
	// Reconciling stands in a status from the first run of a generation until it has succeeded, except
	// with Stalled. A later run of the same generation does not set it.
	Reconciling Type = "Reconciling"
	// Stalled stands in a status while a person has to act.
	Stalled Type = "Stalled"
)

// These constants name the writer of Ready. Without one, the content writes it for each CR whose runs have written it.
const (
	ReadyByManager = "manager"
	ReadyByContent = "content"
)

// moment is the state of a report for these conditions.
type moment int

const (
	noMoment moment = iota
	momentStarts
	momentSucceeded
	momentFailed
	momentCanceled
	momentPaused
	momentConfirmed
	momentObserved
)

// readyKey of the last run is the digest of the content that has written Ready: its mark. unknownDigest
// is that of content whose digest nobody knows.
const (
	readyKey      = "readyBy"
	unknownDigest = "unknown"
)

// ReadyBy says who writes Ready, by the setting of the watch; "" is decided for each CR. wrote is true
// if the run of the report has written it.
func (r Report) ReadyBy(setting string, wrote bool) Report {
	r.readyBy, r.wroteReady = setting, r.wroteReady || wrote
	if setting == ReadyByManager {
		r.conditions = slices.DeleteFunc(slices.Clone(r.conditions), func(c metav1.Condition) bool { return c.Type == string(Ready) })
	}
	return r
}

// AskedFor says of a run that begins that somebody has asked for it: it ends Stalled.
func (r Report) AskedFor() Report {
	r.asked = true
	return r
}

// Repeated says of a failure that it has been the same until the pause between two runs reached its
// limit, and of a canceled run that a person has ended it.
func (r Report) Repeated(stalled bool) Report {
	r.stalled = stalled
	return r
}

// times matches the parts that differ between two messages of the same failure.
var times = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*|\b\d\d:\d\d:\d\d(\.\d+)?\b|\b(\d+(\.\d+)?\s?(ns|us|µs|ms|s|m|h|seconds?|minutes?|hours?))+\b`)

// SameFailure reports whether two outcomes are the same failure: their messages differ in times at most.
func SameFailure(a, b content.Outcome) bool {
	return a.Verdict == content.Failed && b.Verdict == content.Failed && a.Reason == b.Reason &&
		times.ReplaceAllString(bounded(a.Message, maxMessage), "") == times.ReplaceAllString(bounded(b.Message, maxMessage), "")
}

// readiness returns the conditions of kstatus that a status must have after the report, and the types of
// those that it must not have.
func (r Report) readiness(current map[string]any) (set []metav1.Condition, removed []string) {
	list, _ := current["conditions"].([]any)
	set, removed = r.kstatus(current, list)
	if !r.writesReady(current) {
		set = slices.DeleteFunc(set, func(c metav1.Condition) bool { return c.Type == string(Ready) })
	}
	return set, removed
}

func (r Report) kstatus(current map[string]any, list []any) (set []metav1.Condition, removed []string) {
	settled, ready := r.settled(current, list), r.about(list, Ready)
	neither := []string{string(Reconciling), string(Stalled)}
	switch r.moment {
	case momentSucceeded:
		return r.healthy(ready), neither
	case momentConfirmed:
		if _, found := find(list, Ready); found == nil {
			return r.healthy(ready), nil
		}
	case momentObserved:
		if settled {
			return r.healthy(ready), nil
		}
	case momentStarts:
		return r.starting(list, settled, ready)
	case momentFailed:
		return r.failing(list)
	case momentCanceled:
		if r.stalled && !settled {
			return []metav1.Condition{
				condition(Ready, metav1.ConditionFalse, content.ReasonCanceled, messageEnded), condition(Stalled, metav1.ConditionTrue, content.ReasonCanceled, messageEnded),
			}, neither[:1]
		}
	case momentPaused:
		if !settled && ready == nil {
			set = append(set, condition(Ready, metav1.ConditionFalse, ReasonPaused, messagePaused))
		}
		return set, neither[:1]
	}
	return set, nil
}

// starting is kstatus for a run that begins.
func (r Report) starting(list []any, settled bool, ready map[string]any) (set []metav1.Condition, removed []string) {
	if settled {
		return nil, nil
	}
	_, ended := find(list, Failure) // Any run that has ended sets it.
	switch {
	case ready != nil && ready["reason"] != ReasonPaused:
	case ended == nil:
		set = append(set, condition(Ready, metav1.ConditionUnknown, ReasonRunning, messageRunning))
	default:
		set = append(set, condition(Ready, metav1.ConditionFalse, ReasonRunning, messageRunning))
	}
	switch stalled := r.about(list, Stalled); {
	case stalled != nil && !r.asked && !isRefusal(stalled["reason"]):
		return set, nil
	case r.about(list, Reconciling) == nil:
		set = append(set, condition(Reconciling, metav1.ConditionTrue, ReasonRunning, messageRunning))
	}
	return set, []string{string(Stalled)}
}

// failing is kstatus for a failure.
func (r Report) failing(list []any) (set []metav1.Condition, removed []string) {
	message := bounded(r.outcome.Message, maxReadyMessage)
	stalled := r.about(list, Stalled)
	switch {
	case r.nothingRan, r.stalled, stalled != nil && SameFailure(lastOf(list), r.outcome):
		return []metav1.Condition{
			condition(Ready, metav1.ConditionFalse, r.outcome.Reason, message), condition(Stalled, metav1.ConditionTrue, r.outcome.Reason, message),
		}, []string{string(Reconciling)}
	}
	return []metav1.Condition{
		condition(Ready, metav1.ConditionFalse, r.outcome.Reason, message), condition(Reconciling, metav1.ConditionTrue, ReasonRetrying, message),
	}, []string{string(Stalled)}
}

// isRefusal reports whether the reason of Stalled ends with the next run.
func isRefusal(reason any) bool {
	return slices.Contains([]any{string(content.ReasonInvalidSpec), string(content.ReasonInvalidAnnotation), string(content.ReasonCanceled)}, reason)
}

// about returns a condition that is about the report's generation; nil if there is none.
func (r Report) about(list []any, kind Type) map[string]any {
	_, c := find(list, kind)
	if c != nil && (c["observedGeneration"] == r.generation || r.again) {
		return c
	}
	return nil
}

// settled reports whether the report's generation has succeeded, and nothing was wrong with it since.
func (r Report) settled(current map[string]any, list []any) bool {
	if current["observedGeneration"] != r.generation && !r.again || r.about(list, Reconciling) != nil || r.about(list, Stalled) != nil {
		return false
	}
	return r.about(list, Successful)["status"] == "True"
}

// writesReady reports whether the manager writes this CR's Ready.
func (r Report) writesReady(current map[string]any) bool {
	if r.readyBy != "" {
		return r.readyBy == ReadyByManager
	}
	return r.mark(current) == ""
}

// mark returns the mark that the status has after the report. It ends when other content succeeds and
// has not written Ready.
func (r Report) mark(current map[string]any) string {
	run, _ := current[runKey].(map[string]any)
	mark, _ := run[readyKey].(string)
	digest := cmp.Or(r.contentDigest, unknownDigest)
	switch {
	case r.wroteReady:
		return digest
	case r.moment == momentSucceeded && r.ran && mark != digest:
		return ""
	}
	return mark
}

// Readiness reports whether an operation is about a condition of kstatus.
func (o Operation) Readiness() bool {
	value, _ := o.Value.(map[string]any)
	return slices.Contains([]any{string(Ready), string(Reconciling), string(Stalled)}, value["type"])
}

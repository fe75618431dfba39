package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ShowsRun reports whether the status of obj shows a run that has not ended. A success leaves the
// condition True, with another reason.
func ShowsRun(obj *unstructured.Unstructured) bool {
	running := Read(obj, Running)
	return running.Status == metav1.ConditionTrue && running.Reason == ReasonRunning
}

// Read returns the condition of a type from the status of obj, the zero value if there
// is none.
func Read(obj *unstructured.Unstructured, kind Type) metav1.Condition {
	_, found := find(conditionsOf(obj), kind)
	text := func(key string) string { s, _ := found[key].(string); return s }
	since, _ := time.Parse(time.RFC3339, text("lastTransitionTime")) // Zero if the text is not a time.
	observed, _ := found["observedGeneration"].(int64)
	return metav1.Condition{
		ObservedGeneration: observed,
		Type:               text("type"), Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message"),
		LastTransitionTime: metav1.NewTime(since),
	}
}

// conditionsOf returns the conditions of obj itself, no copy: somebody may have written a megabyte of them.
func conditionsOf(obj *unstructured.Unstructured) []any {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", "conditions")
	list, _ := value.([]any)
	return list
}

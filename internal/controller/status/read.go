package status

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/content"
)

// Condition is one of Ensign's conditions as it stands in an object. The zero value is none.
type Condition struct {
	Status  string // "True", "False", or whatever others wrote
	Reason  content.Reason
	Message string
	// Since is when the status of the condition changed; zero if unknown.
	Since time.Time
}

// Read returns the condition of a type from the status of obj.
func Read(obj *unstructured.Unstructured, kind Type) Condition {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	_, found := find(list, kind)
	text := func(key string) string { s, _ := found[key].(string); return s }
	since, _ := time.Parse(time.RFC3339, text("lastTransitionTime")) // Zero if it is no time.
	return Condition{Status: text("status"), Reason: content.Reason(text("reason")), Message: text("message"), Since: since}
}

// Ended returns when the last run ended, from the ansibleResult of the conditions of obj; the
// zero time if none has one, as with charts.
func Ended(obj *unstructured.Unstructured) (last time.Time) {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, kind := range []Type{Running, Successful, Failure} {
		_, found := find(list, kind)
		result, _ := found["ansibleResult"].(map[string]any)
		text, _ := result["completion"].(string)
		if ended, err := time.Parse(completionFormat, text); err == nil && ended.After(last) {
			last = ended
		}
	}
	return last
}

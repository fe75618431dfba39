package status

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/pkg/content"
)

// Condition is one of the conditions of a report, or one of Ensign's as it stands in an object.
// The zero value is none.
type Condition struct {
	content.Condition

	// Result is its ansibleResult; nil if it has none. Read does not set it.
	Result map[string]any
	// Since is when the status of the condition changed; zero if unknown. Only Read sets it.
	Since time.Time
}

// Read returns the condition of a type from the status of obj.
func Read(obj *unstructured.Unstructured, kind Type) Condition {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	_, found := find(list, kind)
	text := func(key string) string { s, _ := found[key].(string); return s }
	since, _ := time.Parse(time.RFC3339, text("lastTransitionTime")) // Zero if it is no time.
	return Condition{Condition: content.Condition{Type: text("type"), Status: text("status"), Reason: content.Reason(text("reason")), Message: text("message")}, Since: since}
}

package engine

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWhatTheClusterHasAggregatedAnew(t *testing.T) {
	const controller = "clusterrole-aggregation-controller"
	aggregates := map[string]any{"aggregationRule": map[string]any{}}
	for why, test := range map[string]struct {
		recorded map[string]any
		writers  []string
		want     bool
	}{
		"the controller has brought back rules":    {aggregates, []string{controller}, true},
		"it has brought back a role without rules": {aggregates, nil, true},
		"somebody has written it":                  {aggregates, []string{controller, "kubectl"}, false},
		"a role that does not aggregate":           {map[string]any{}, []string{controller}, false},
	} {
		live := &unstructured.Unstructured{Object: map[string]any{}}
		var fields []metav1.ManagedFieldsEntry
		for _, writer := range test.writers {
			fields = append(fields, metav1.ManagedFieldsEntry{Manager: writer})
		}
		live.SetManagedFields(fields)
		if got := aggregatedAnew(&unstructured.Unstructured{Object: test.recorded}, live); got != test.want {
			t.Errorf("%s: got %v", why, got)
		}
	}
}

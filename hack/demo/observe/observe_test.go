package observe

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// reporting is an object of generation 3 whose conditions are about the given
// one.
func reporting(generation int64, statuses map[string]string) *unstructured.Unstructured {
	var conditions []any
	for kind, status := range statuses {
		conditions = append(conditions, map[string]any{
			"type": kind, "status": status, "reason": "R", "message": "m", "observedGeneration": generation,
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"generation": int64(3)},
		"status":   map[string]any{"conditions": conditions},
	}}
}

func TestOutcome(t *testing.T) {
	succeeded := map[string]string{"Running": "True", "Successful": "True", "Failure": "False"}
	failed := map[string]string{"Running": "False", "Successful": "False", "Failure": "True"}
	tests := map[string]struct {
		object    *unstructured.Unstructured
		succeeded bool
		wantErr   string
	}{
		"a success is one":                              {object: reporting(3, succeeded), succeeded: true},
		"a failure is one":                              {object: reporting(3, failed)},
		"a failure is no success":                       {object: reporting(3, failed), succeeded: true, wantErr: `Successful is "False"`},
		"a success is no failure":                       {object: reporting(3, succeeded), wantErr: `Failure is "False"`},
		"what is about an older generation counts not":  {object: reporting(2, succeeded), succeeded: true, wantErr: `Successful is ""`},
		"an object without a status has no outcome yet": {object: &unstructured.Unstructured{Object: map[string]any{}}, succeeded: true, wantErr: `Running is ""`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := Outcome(test.object, test.succeeded)
			if (err != nil) != (test.wantErr != "") {
				t.Fatalf("got error %v, want %q", err, test.wantErr)
			}
			if err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("got error %q, want %q in it", err, test.wantErr)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	got := Conditions(reporting(3, map[string]string{"Failure": "True"}))
	want := map[string]Condition{"Failure": {Status: "True", Reason: "R", Message: "m"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

//go:build long

package status_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/test/harness/peak"
)

func TestPeakMemory(t *testing.T) {
	reads := func(many string, size int) func() func() error {
		return func() func() error {
			text := `{"apiVersion":"g/v1","kind":"K","metadata":{"name":"n"},"status":{"conditions":[` + strings.Repeat(many, size/len(many)) + `{}]}}`
			return func() error {
				var cr unstructured.Unstructured
				if err := cr.UnmarshalJSON([]byte(text)); err != nil {
					return err
				}
				for range 20 { // More often than one reconcile reads it.
					status.Read(&cr, status.Running)
					status.ReadRun(&cr)
					status.Last(&cr)
				}
				status.Patch(&cr, status.Started(1, false), later)
				return nil
			}
		}
	}
	peak.Measure(t, []peak.Input{
		{Name: "status: most maps", MiB: 120, Make: reads(`{"":0},`, 3<<19)},
		{Name: "status: most conditions", MiB: 120, Make: reads(`{},`, 3<<19)},
	})
}

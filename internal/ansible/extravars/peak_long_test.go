//go:build long

package extravars

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/test/harness/peak"
)

func TestPeakMemory(t *testing.T) {
	reads := func(many string, size int) func() func() error {
		return func() func() error {
			text := `{"apiVersion":"g/v1","kind":"K","metadata":{"name":"n","namespace":"ns"},"spec":{"a":[` + strings.Repeat(many, size/len(many)) + `0]}}`
			return func() error {
				var cr unstructured.Unstructured
				err := cr.UnmarshalJSON([]byte(text))
				vars, refusal := Build(cr.Object, Options{GVK: cr.GroupVersionKind(), SnakeCase: true, MarkUnsafe: true})
				if err = errors.Join(err, refusal); err == nil {
					_, err = vars.Encode()
				}
				return err
			}
		}
	}
	peak.Measure(t, []peak.Input{
		{Name: "spec: most maps", MiB: 250, Make: reads(`{"a":0},`, maxSpecBytes-100)},
		{Name: "spec: most lists", MiB: 250, Make: reads(`[],`, maxSpecBytes-100)},
		{Name: "spec: more maps", MiB: 250, Refused: true, Make: reads(`{"a":0},`, 3<<19)},
	})
}

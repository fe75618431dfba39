//go:build long

package ledger

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ensign-operator/ensign/test/harness/peak"
)

func TestPeakMemory(t *testing.T) {
	reads := func(many string, n int) func() func() error {
		return func() func() error {
			object := &corev1.ConfigMap{BinaryData: map[string][]byte{packedKey: pack(t, `{"revisions":[{"names":{"objects":[`+strings.Repeat(many, n)+`{}]}}]}`)}}
			return func() error {
				_, err := decode(object)
				return err
			}
		}
	}
	peak.Measure(t, []peak.Input{
		{Name: "ledger: most objects", MiB: 650, Make: reads(`{},`, maxUnpacked/3-30)},
		{Name: "ledger: more", MiB: 50, Refused: true, Make: reads(`{},`, 100<<20)},
	})
}

//go:build long

package values

import (
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/peak"
)

func TestPeakMemory(t *testing.T) {
	reads := func(text string) func() func() error {
		return func() func() error {
			object := from(text)
			return func() error {
				if err := Check([]From{object}); err != nil {
					return err
				}
				secret := object.Shown() // As the manager does, before it merges.
				_, err := Merge([]From{object})
				NewMask(secret).Text(text)
				return err
			}
		}
	}
	peak.Measure(t, []peak.Input{
		{Name: "valuesFrom: most maps", MiB: 200, Make: reads("a: [" + strings.Repeat("a: ,", maxEntries-1) + "]")},
		{Name: "valuesFrom: one more", MiB: 5, Refused: true, Make: reads("a: [" + strings.Repeat("a: ,", maxEntries+1) + "]")},
		{Name: "valuesFrom: most lines", MiB: 200, Make: reads("a: |\n" + strings.Repeat(" "+strings.Repeat("x", 18)+"\n", maxEntries-1))},
		{Name: "valuesFrom: longest line", MiB: 50, Make: reads("a: " + strings.Repeat("x", maxFrom-3))},
		{Name: "valuesFrom: a longer one", MiB: 5, Refused: true, Make: reads("a: " + strings.Repeat("x", maxFrom))},
	})
}

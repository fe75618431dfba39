//go:build long

package author

import "testing"

// alone is set where each kind of content is tried alone, too.
const alone = true

// TestAFreshProjectPassesItsOwnTests takes some minutes: for each kind of content both linters, check
// and Molecule.
func TestAFreshProjectPassesItsOwnTests(t *testing.T) {
	shared := newDesk(t)
	for _, p := range freshProjects(t) {
		t.Run(p.name, func(t *testing.T) {
			shared := *shared
			shared.t = t
			d := p.write(&shared)
			d.wants(d.run(0, "make", "test"), "1 successful")
		})
	}
}

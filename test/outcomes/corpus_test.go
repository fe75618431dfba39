//go:build long

package outcomes

import "testing"

// TestCorpus runs every play in every form that it has. One theme, play or form
// alone: -run 'TestCorpus/hosts/no_host_matches/playbook'.
func TestCorpus(t *testing.T) {
	c := newCorpus(t)
	for theme, plays := range themes() {
		t.Run(theme, func(t *testing.T) {
			t.Parallel()
			for name, p := range plays {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					for _, f := range p.forms() {
						t.Run(string(f), func(t *testing.T) {
							t.Parallel()
							c.check(t, name, p, f)
						})
					}
				})
			}
		})
	}
}

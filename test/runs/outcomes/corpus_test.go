//go:build long

package outcomes

import "testing"

// TestCorpus runs every play in every form that it has. One theme, play or form
// alone: -run 'TestCorpus/hosts/no_host_matches/playbook'.
func TestCorpus(t *testing.T) {
	c := newCorpus()
	for _, p := range plays(t, func(play) bool { return true }) {
		for _, f := range p.forms() {
			t.Run(p.theme+"/"+p.name+"/"+string(f), func(t *testing.T) {
				t.Parallel()
				c.check(t, p, f)
			})
		}
	}
}

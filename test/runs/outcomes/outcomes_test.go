package outcomes

import "testing"

// The plays that show the most: each is one that a simple look at the exit code
// or at events of failed tasks gets wrong.
func TestRevealingPlays(t *testing.T) {
	c := newCorpus()
	for _, p := range plays(t, func(p play) bool { return p.revealing != "" }) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			c.check(t, p, p.revealing)
		})
	}
}

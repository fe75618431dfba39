package outcomes

import "testing"

// The plays that show the most: each is one that a simple look at the exit code
// or at events of failed tasks gets wrong.
func TestRevealingPlays(t *testing.T) {
	c := newCorpus(t)
	for _, revealing := range []struct {
		name  string
		plays map[string]play
		form  form
	}{
		{"a failure after one that was rescued", blocks(), asRole},
		{"an error is ignored, another is not", blocks(), asFinalizer},
		{"no host matches", hosts(), asPlaybook},
		{"hosts fail, are rescued, ignored and unreachable", hosts(), asPlaybook},
		{"a host that cannot be reached is ignored", faults(), asFinalizer},
		{"ansible-playbook is killed", faults(), asRole},
	} {
		t.Run(revealing.name, func(t *testing.T) {
			t.Parallel()
			c.check(t, revealing.name, revealing.plays[revealing.name], revealing.form)
		})
	}
}

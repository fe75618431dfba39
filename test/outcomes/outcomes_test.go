package outcomes

import "testing"

// The plays that show the most: each is one that a simple look at the exit code
// or at events of failed tasks gets wrong.
func TestRevealingPlays(t *testing.T) {
	c := newCorpus(t)
	for name, f := range map[string]form{
		"a failure after one that was rescued": asRole,
		"an error is ignored, another is not":  asFinalizer,
		"no host matches":                      asPlaybook,
		"no tasks":                             asRole,
		"end_play":                             asRole,
		"the first play has no host and the second no task": asPlaybook,
		"hosts fail, are rescued, ignored and unreachable":  asPlaybook,
		"a host that cannot be reached is ignored":          asFinalizer,
		"ansible-playbook is killed":                        asRole,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t, name, named(t, name), f)
		})
	}
}

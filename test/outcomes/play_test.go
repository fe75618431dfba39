package outcomes

import (
	"testing"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
)

// play is one play of the corpus, with what is expected of it by hand.
type play struct {
	// tasks and handlers are a role's. A playbook has the same in its play.
	tasks, handlers string
	// playbook is the form of a playbook where that differs. Without tasks it is
	// one of which a role cannot say what it is about.
	playbook string
	// files are further ones, by their path beside the tasks or the playbook.
	files map[string]string
	// inventory replaces localhost. In all of these texts @PYTHON@ stands for the
	// interpreter and @CONTENT@ for the directory of the content.
	inventory string
	args      string // of ansible-playbook
	timeout   time.Duration
	// alone is true where plain ansible-playbook, which has no terminal, does
	// something else.
	alone bool

	expected
	// included is expected instead where another file includes the tasks, as that
	// of a finalizer does: some faults are found only then, and are a task's.
	included *expected
}

// expected is what a play must come to.
type expected struct {
	// reason is "" for a success.
	reason jobevent.Reason
	// message is a part of the outcome's, and silent is none. "@" stands for what
	// precedes the names of a role's tasks.
	message, silent string
	exit            int // of ansible-playbook
}

// in returns the play as it is in a form.
func (p play) in(f form) play {
	if f == asFinalizer && p.included != nil {
		p.expected = *p.included
	}
	return p
}

// Reasons, shorter.
const (
	failed      = jobevent.ReasonFailed
	noStats     = jobevent.ReasonNoStats
	crashed     = jobevent.ReasonRunnerCrashed
	noHosts     = jobevent.ReasonNoHosts
	unreachable = jobevent.ReasonUnreachable
	timeout     = jobevent.ReasonTimeout
)

// themes are the tables of the corpus.
func themes() map[string]map[string]play {
	return map[string]map[string]play{
		"blocks": blocks(), "loops": loops(), "flow": flow(), "parallel": parallel(), "faults": faults(), "hosts": hosts(), "playbooks": playbooks(),
	}
}

// named finds a play of the corpus.
func named(t *testing.T, name string) play {
	t.Helper()
	for _, plays := range themes() {
		if p, found := plays[name]; found {
			return p
		}
	}
	t.Fatalf("there is no play %q", name)
	return play{}
}

package outcomes

import (
	"regexp"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/pkg/content"
)

// corpus runs plays, two at a time.
type corpus struct{ slots chan struct{} }

func newCorpus() *corpus { return &corpus{slots: make(chan struct{}, 2)} }

// place is where a task stands, behind its name.
var place = regexp.MustCompile(`\] \([^ ]+\.yml:\d+\)`)

// check runs a play in a form, and with plain ansible-playbook, and holds what
// came out against each other and against what is expected. A play that fails
// runs once more in its first form, to fail with the same message.
func (c *corpus) check(t *testing.T, p play, f form) {
	t.Helper()
	p = p.in(f)
	c.slots <- struct{}{}
	defer func() { <-c.slots }()
	b := newTable(t)
	laid := b.lay(t, p, f)
	got := b.run(t, p, laid.spec, 1)
	p.expect(t, f, got)
	if f == p.forms()[0] && got.Outcome.Message != "" {
		if again := b.run(t, p, laid.spec, 2).Outcome; again != got.Outcome {
			t.Errorf("a second run came to\n%+v\nafter\n%+v", again, got.Outcome)
		}
	}
	if !p.alone {
		p.compare(t, b.ansible(t, p, laid.playbook, laid.vars), got)
	}
}

// expect holds an outcome against what the play says.
func (p play) expect(t *testing.T, f form, got runner.Result) {
	t.Helper()
	verdict := content.Failed
	if p.reason == content.ReasonSuccessful {
		verdict = content.Succeeded
	}
	o := got.Outcome
	if o.Verdict != verdict || o.Reason != p.reason {
		t.Errorf("got %s, %s instead of %s, %s:\n%s", o.Verdict, o.Reason, verdict, p.reason, o.Message)
	}
	prefix := "content : "
	if f == asPlaybook || p.tasks == "" {
		prefix = ""
	}
	// Where a task stands depends on the form.
	message := place.ReplaceAllLiteralString(o.Message, "]")
	if o.Reason == content.ReasonFailed && len(got.Summary.Failed) > 0 && message == o.Message {
		t.Errorf("got message %q, which names no file", o.Message)
	}
	if want := strings.ReplaceAll(p.message, "@", prefix); !strings.Contains(message, want) {
		t.Errorf("got message %q, want %q in it", o.Message, want)
	}
	if p.silent != "" && strings.Contains(o.Message, p.silent) {
		t.Errorf("got message %q, want no %q in it", o.Message, p.silent)
	}
}

// compare holds a run against what Ansible itself said.
func (p play) compare(t *testing.T, said truth, got runner.Result) {
	t.Helper()
	if said.exit != p.exit {
		t.Errorf("ansible-playbook exited with %d, want %d", said.exit, p.exit)
	}
	if said.success() != (got.Outcome.Verdict == content.Succeeded) {
		t.Errorf("the verdict is %+v, but Ansible exited with %d and counted %v", got.Outcome, said.exit, said.counts)
	}
	if !said.agrees(got.Summary) {
		t.Errorf("counted %+v, but Ansible counted %v on %d hosts", got.Summary, said.counts, said.hosts)
	}
	if t.Failed() {
		t.Logf("ansible-playbook said:\n%s", said.output)
	}
}

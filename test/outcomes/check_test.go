package outcomes

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
)

// corpus runs plays, two at a time, and prints what came out as a table.
type corpus struct {
	slots chan struct{}
	mu    sync.Mutex
	rows  map[string]map[form]row
}

// place is where a task stands, behind its name.
var place = regexp.MustCompile(`\] \([^ ]+\.yml:\d+\)`)

// row is what came out of a play in one form.
type row struct {
	exit    string
	outcome jobevent.Outcome
	agrees  bool
}

func newCorpus(t *testing.T) *corpus {
	t.Helper()
	c := &corpus{slots: make(chan struct{}, 2), rows: map[string]map[form]row{}}
	t.Cleanup(func() { t.Log("\n" + c.table()) })
	return c
}

// check runs a play in a form, and with plain ansible-playbook, and holds what
// came out against each other and against what is expected. A play that fails
// runs once more in its first form, to fail with the same message.
func (c *corpus) check(t *testing.T, p play, f form) {
	t.Helper()
	p = p.in(f)
	c.slots <- struct{}{}
	defer func() { <-c.slots }()
	b := newBench(t)
	laid := b.lay(t, p, f)
	got := b.run(t, p, laid.spec, 1)
	p.expect(t, f, got)
	if f == p.forms()[0] && got.Outcome.Message != "" {
		if again := b.run(t, p, laid.spec, 2).Outcome; again != got.Outcome {
			t.Errorf("a second run came to\n%+v\nafter\n%+v", again, got.Outcome)
		}
	}
	r := row{exit: "–", outcome: got.Outcome}
	if !p.alone {
		said := b.ansible(t, p, laid.playbook, laid.vars)
		p.compare(t, said, got)
		r.exit = fmt.Sprint(said.exit)
	}
	r.agrees = !t.Failed()
	c.add(p.name, f, r)
}

// expect holds an outcome against what the play says.
func (p play) expect(t *testing.T, f form, got runner.Result) {
	t.Helper()
	verdict := jobevent.Failed
	if p.reason == jobevent.ReasonSuccessful {
		verdict = jobevent.Succeeded
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
	if o.Reason == jobevent.ReasonFailed && len(got.Summary.Failed) > 0 && message == o.Message {
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
	if said.success() != (got.Outcome.Verdict == jobevent.Succeeded) {
		t.Errorf("the verdict is %+v, but Ansible exited with %d and counted %v", got.Outcome, said.exit, said.counts)
	}
	if !said.agrees(got.Summary) {
		t.Errorf("counted %+v, but Ansible counted %v on %d hosts", got.Summary, said.counts, said.hosts)
	}
	if t.Failed() {
		t.Logf("ansible-playbook said:\n%s", said.output)
	}
}

func (c *corpus) add(name string, f form, r row) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rows[name] == nil {
		c.rows[name] = map[form]row{}
	}
	c.rows[name][f] = r
}

// table shows the plays, the forms in which the verdict agrees with Ansible's, and
// what it is.
func (c *corpus) table() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	type line struct{ play, role, playbook, finalizer, exit, verdict, reason string }
	lines, runs := []line{{"PLAY", "ROLE", "PLAYBOOK", "FINALIZER", "ANSIBLE'S EXIT", "VERDICT", "REASON"}}, 0
	for name, forms := range c.rows {
		l := line{play: name, role: forms[asRole].cell(), playbook: forms[asPlaybook].cell(), finalizer: forms[asFinalizer].cell()}
		for _, r := range forms {
			l.exit, l.verdict, l.reason = r.exit, string(r.outcome.Verdict), string(r.outcome.Reason)
			runs++
		}
		lines = append(lines, l)
	}
	slices.SortFunc(lines[1:], func(a, b line) int {
		return cmp.Or(cmp.Compare(b.verdict, a.verdict), cmp.Compare(a.reason, b.reason), cmp.Compare(a.play, b.play))
	})
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		fmt.Fprintln(w, strings.Join([]string{l.play, l.role, l.playbook, l.finalizer, l.exit, l.verdict, l.reason}, "\t"))
	}
	_ = w.Flush() // A strings.Builder takes everything.
	fmt.Fprintf(&out, "%d plays, %d of play × form\n", len(c.rows), runs)
	return out.String()
}

func (r row) cell() string {
	switch {
	case r.outcome.Verdict == "":
		return "–"
	case r.agrees:
		return "agrees"
	}
	return "DISAGREES"
}

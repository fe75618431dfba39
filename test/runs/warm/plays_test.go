package warm

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/harness/cores"
)

func TestAPlayIsTheSameWarm(t *testing.T) {
	cores.OnEach(t, func(t *testing.T, c cores.Core) {
		b := newBenchOf(t, c.Env, nil)
		b.lay(plays(t))
		for _, p := range plays(t) {
			t.Run(p.name, func(t *testing.T) { b.compare(t, p) })
		}
	})
}

// compare shows that the play is the same warm, and what it starts then.
func (b *counted) compare(t *testing.T, p play) {
	t.Helper()
	b.in(t, p)
	cold := b.see(p, true)
	b.refusals()
	warm := b.see(p, false)
	if diff := difference(cold, warm); diff != "" {
		t.Errorf("cold - and warm +:\n%s", diff)
		if diff := difference(cold, b.see(p, true)); diff != "" {
			t.Errorf("and two cold runs differ, - and +:\n%s", diff)
		}
	}
	if cold.Exit != p.exit {
		t.Errorf("got exit code %d, want %d: %s %s", cold.Exit, p.exit, cold.Reason, cold.Message)
	}
	if diff := cmp.Diff(p.starts(), b.starts(p)); diff != "" {
		t.Errorf("what was started, and how; wanted - and got +:\n%s", diff)
	}
}

// difference tells how sights differ, and not at any length.
func difference(one, other sight) string {
	const enough = 8 << 10
	diff := cmp.Diff(one, other)
	return diff[:min(len(diff), enough)]
}

// starts is what a run started of what can be forked.
type starts struct {
	Forked map[string]int
	Cold   []string // programs with reasons
}

// starts are those of the play's warm run. What is cold keeps what it starts from
// being anything else.
func (p play) starts() starts {
	want := starts{Forked: map[string]int{"ansible-runner": 1, "python": max(p.python, 0)}, Cold: p.cold}
	if slices.ContainsFunc(p.cold, func(cold string) bool { return strings.HasPrefix(cold, "ansible-runner") }) {
		want.Forked["ansible-runner"] = 0
	}
	maps.DeleteFunc(want.Forked, func(_ string, n int) bool { return n == 0 })
	return want
}

// starts are those of the last run. The servers tell of them as they come to it: what differs is
// looked at again.
func (b *counted) starts(p play) starts {
	for deadline := time.Now().Add(waitTimeout); ; <-time.After(5 * time.Millisecond) {
		b.mu.Lock()
		got := starts{Forked: maps.Clone(b.forked), Cold: slices.Clone(b.refused)}
		b.mu.Unlock()
		if p.python < 0 {
			delete(got.Forked, "python")
		}
		if cmp.Equal(got, p.starts()) || time.Now().After(deadline) {
			return got
		}
	}
}

// in makes the bench that of a play, whose servers are ready then.
func (b *counted) in(t *testing.T, p play) {
	t.Helper()
	b.For(t)
	p.lay(b)
	b.plain(p.environ(b)...)
	b.heat(p.cold...)
	b.Args = p.in(b, p.args)
	if p.inventory != "" {
		b.Inventory = filepath.Join(p.dir(b), p.inventory)
	}
}

package safevars

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/cores"
)

// TestNoUseRunsATextOfAnObject tries every use with every kind of text, marked
// and, as a control, not marked.
func TestNoUseRunsATextOfAnObject(t *testing.T) {
	trials := readTrials(t, everyUse)
	cores.OnEach(t, func(t *testing.T, c cores.Core) {
		t.Parallel() // These are the longest runs by far.
		results := &table{}
		together, alone := split(trials)
		marked, plain := tryTogether(t, c, together, true), tryTogether(t, c, together, false)
		for _, trial := range together {
			results.add(trial, marked[trial.id], plain[trial.id])
		}
		p := newPlaybooks(t, c)
		for _, trial := range alone {
			// One kind of text is control enough where a run costs so much.
			control := trial.kind == kinds()[0] && p.tryAlone(t, c, trial, false)
			results.add(trial, p.tryAlone(t, c, trial, true), control)
		}
		results.check(t)
		t.Logf("%d uses, %d trials", len(results.rows), len(trials))
	})
}

// split tells the trials that share a run, tasks before plays as in the run,
// from those that have one each.
func split(trials []trial) (together, alone []trial) {
	var plays []trial
	for _, c := range trials {
		switch {
		case c.use.OwnRun:
			alone = append(alone, c)
		case c.use.Play != nil:
			plays = append(plays, c)
		default:
			together = append(together, c)
		}
	}
	return append(together, plays...), alone
}

// tryTogether tells the trials whose texts were executed. A trial may end the
// run, as a number that is none does; then another run takes those that are
// left, so that every trial is reached.
func tryTogether(t *testing.T, c cores.Core, trials []trial, marked bool) map[string]bool {
	t.Helper()
	executed := map[string]bool{}
	for barren := 0; len(trials) > 0; {
		r := usesSetup(t, trials, marked).start(t, c, "-p", "uses.yml")
		for _, id := range r.executed(t) {
			executed[id] = true
		}
		at := slices.IndexFunc(trials, func(c trial) bool { return !strings.Contains(r.output, "end of "+c.id+`"`) })
		if at < 0 {
			return executed
		}
		if at > 0 {
			// What came before may be why; it has the next run to show itself.
			trials, barren = trials[at:], 0
			continue
		}
		if barren++; barren > 2*len(kinds()) {
			t.Fatalf("runs end before they begin, at %q:\n%s", trials[0].use.Use, r.tail())
		}
		t.Logf("a text of the kind %q ends the run (marked: %v): %s", trials[0].kind.name, marked, trials[0].use.Use)
		trials = trials[1:]
	}
	return executed
}

// tryAlone reports whether the text of a trial was executed in its own run.
func (p playbooks) tryAlone(t *testing.T, c cores.Core, one trial, marked bool) bool {
	t.Helper()
	r := usesSetup(t, []trial{one}, marked).lay(t, c)
	p.run(t, &r, "uses.yml")
	return slices.Contains(r.executed(t), one.id)
}

func usesSetup(t *testing.T, trials []trial, marked bool) setup {
	t.Helper()
	return setup{
		object:  func(markers string) map[string]any { return usesObject(trials, markers) },
		prepare: func(project string) { writeProject(t, project, trials) },
		plain:   !marked,
	}
}

// table tells what was executed.
type table struct{ rows []row }

type row struct {
	use, never        string
	executed, control []string
}

func (r *table) add(c trial, executed, control bool) {
	if len(r.rows) == 0 || r.rows[len(r.rows)-1].use != c.use.Use {
		r.rows = append(r.rows, row{use: c.use.Use, never: c.use.Never})
	}
	last := &r.rows[len(r.rows)-1]
	if executed {
		last.executed = append(last.executed, c.kind.name)
	}
	if control {
		last.control = append(last.control, c.kind.name)
	}
}

// check wants that nothing was executed, and that for every use, and for every
// kind of text, something was executed without the marks.
func (r *table) check(t *testing.T) {
	t.Helper()
	kindsSeen := map[string]bool{}
	for _, row := range r.rows {
		if len(row.executed) > 0 {
			t.Errorf("%q executed texts of the kinds %q", row.use, row.executed)
		}
		if (len(row.control) == 0) != (row.never != "") {
			t.Errorf("%q executed unmarked texts of the kinds %q, want some: %v", row.use, row.control, row.never == "")
		}
		for _, kind := range row.control {
			kindsSeen[kind] = true
		}
	}
	for _, kind := range kinds() {
		if !kindsSeen[kind.name] && os.Getenv("SAFEVARS_USES") == "" {
			t.Errorf("no use executed an unmarked text of the kind %q, so it proves nothing", kind.name)
		}
	}
}

package runs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/ansible/runner/program"
	"github.com/ensign-operator/ensign/internal/ansible/warm"
	"github.com/ensign-operator/ensign/internal/process/proctree"
	"github.com/ensign-operator/ensign/internal/process/rundir"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// common is what all benches run in, one after the other, as all runs of a manager do:
// a run directory, and servers where the runs of suites are warm. Starting servers for
// each test would take longer than most of them.
type common struct {
	dir   string
	root  *rundir.Root
	stove *stove // nil where runs are cold
}

// shared is made by the first test that needs it, and ends after the last.
var shared *common

func inCommon(t *testing.T, env pyenv.Env) *common {
	t.Helper()
	if shared == nil {
		c, err := newCommon(env)
		if err != nil {
			t.Fatal(err)
		}
		shared = c
	}
	return shared
}

func newCommon(env pyenv.Env) (*common, error) {
	dir, err := os.MkdirTemp("/tmp", "runs")
	if err != nil {
		return nil, err
	}
	c := &common{dir: dir}
	if c.root, err = rundir.Open(filepath.Join(dir, "runs")); err != nil || !harness.Warm() {
		return c, err
	}
	c.stove = &stove{}
	c.stove.Server, err = warm.New(filepath.Join(dir, "warm"), env.Python, func() (string, error) { return program.Provide(filepath.Join(c.root.Path(), ".program")) }, &c.stove.reaper, warm.Options{Logger: logr.Discard()})
	return c, err
}

func (c *common) close() error {
	if c == nil {
		return nil
	}
	var err error
	if c.stove != nil {
		err = c.stove.Close()
	}
	return errors.Join(err, c.root.Close(), os.RemoveAll(c.dir))
}

// empty removes what tests left, and fails if a run of theirs is not over.
func (c *common) empty(t *testing.T) {
	t.Helper()
	if _, err := c.root.Sweep(func(string) bool { return false }); err != nil {
		t.Error(err)
	}
}

// heat makes the runs of the runner warm where those of the suites are: all of these
// tests hold for warm runs too.
func (c *common) heat(t *testing.T, r *runner.Runner) {
	t.Helper()
	if c.stove == nil {
		return
	}
	r.Reaper, r.Launcher = &c.stove.reaper, c.stove
	for deadline := time.Now().Add(scratch.Patience); ; <-time.After(20 * time.Millisecond) {
		r.Prepare()
		if c.stove.hot || c.warms(t, r) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no run is warm")
		}
	}
}

// warms reports whether a run was warm. The first are not: the server starts with them.
func (c *common) warms(t *testing.T, r *runner.Runner) bool {
	t.Helper()
	defer c.empty(t)
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{"heat.yml": "- hosts: localhost\n  gather_facts: false\n  tasks: [{ping: }]\n"})
	result := r.Run(t.Context(), runner.Spec{UID: "heat", ID: "heat", Playbook: filepath.Join(dir, "heat.yml"), ExtraVars: []byte("\t\n{}")}, func(jobevent.Event) {})
	if result.Outcome.Verdict != jobevent.Succeeded {
		t.Fatalf("%+v", result.Outcome)
	}
	c.stove.hot = result.Warm
	return result.Warm
}

// stove has the server for warm runs.
type stove struct {
	*warm.Server
	reaper proctree.Reaper
	hot    bool // a run was warm
}

// A run that is cold unasked would show less than these tests say.
func TestRunsAreInTheModeOfTheSuites(t *testing.T) {
	b := newBench(t, map[string]string{"roles/hello/tasks/main.yml": helloRole})
	result := b.run(t.Context(), b.role("hello"))
	wantOutcome(t, result, jobevent.Succeeded, jobevent.ReasonSuccessful)
	if result.Warm != harness.Warm() {
		t.Errorf("the run is warm: %t", result.Warm)
	}
}

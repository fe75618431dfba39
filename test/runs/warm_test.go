package runs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/ansible/warm"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/runs/bench"
)

// shared is what all tests run in, one after the other, as all runs of a manager do: a run
// directory, with a server where the runs of suites are warm. Starting one for each test would
// take longer than most of them. The first test that needs it makes it; it ends after the last.
var shared struct {
	*bench.Place
	dir string
	hot bool // A run was warm.
}

func inCommon(t *testing.T) *bench.Place {
	t.Helper()
	if shared.Place != nil {
		return shared.Place
	}
	dir, err := os.MkdirTemp("/tmp", "runs") //nolint:usetesting // It outlives the test.
	if err != nil {
		t.Fatal(err)
	}
	shared.dir = dir
	if shared.Place, err = bench.Open(filepath.Join(dir, "runs"), environment(t)); err == nil && harness.Warm() {
		err = shared.Serve(warm.Options{Logger: logr.Discard()})
	}
	if err != nil {
		t.Fatal(err)
	}
	return shared.Place
}

func closeShared() error {
	if shared.Place == nil {
		return nil
	}
	return errors.Join(shared.Close(), os.RemoveAll(shared.dir))
}

// empty removes what tests left, and fails if a run of theirs is not over.
func empty(t *testing.T) {
	t.Helper()
	if _, err := shared.Root.Sweep(func(string) bool { return false }); err != nil {
		t.Error(err)
	}
}

// heat makes the runs of the bench warm where those of the suites are: all of these tests hold
// for warm runs too.
func heat(t *testing.T, b *bench.Bench) {
	t.Helper()
	if b.Prepare(); shared.hot || shared.Server == nil {
		return
	}
	b.Heat(bench.IsWarm)
	shared.hot = true
	empty(t)
}

// A run that is cold unasked would show less than these tests say.
func TestRunsAreInTheModeOfTheSuites(t *testing.T) {
	b := newBench(t, map[string]string{"roles/hello/tasks/main.yml": helloRole})
	result := b.run(t.Context(), b.role("hello"))
	wantOutcome(t, result, content.Succeeded, content.ReasonSuccessful)
	if result.Warm != harness.Warm() {
		t.Errorf("the run is warm: %t", result.Warm)
	}
}

package runs

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/jobevent"
	"github.com/ensign-operator/ensign/internal/runner"
	"github.com/ensign-operator/ensign/internal/runner/proctree"
	"github.com/ensign-operator/ensign/internal/warm"
	"github.com/ensign-operator/ensign/test/harness"
)

// heat makes the runs of the runner warm where those of the suites are: all of these
// tests hold for warm runs too.
func heat(t *testing.T, r *runner.Runner) {
	t.Helper()
	if !harness.Warm() {
		return
	}
	r.Owner = &proctree.Owner{}
	pool, err := warm.NewPool(filepath.Join(shortTemp(t), "warm"), warm.Programs{
		Standin: filepath.Join(repository(t), "bin/warm-exec"), Runner: r.Binary,
		Playbook: filepath.Join(filepath.Dir(r.Binary), "ansible-playbook"), Python: r.Python,
	}, r.Owner, warm.Options{Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	book := filepath.Join(t.TempDir(), "heat.yml")
	if err := os.WriteFile(book, []byte("- hosts: localhost\n  gather_facts: false\n  tasks: [{ping: }]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &learner{pool: pool}
	r.Launcher = l
	for deadline := time.Now().Add(time.Minute); l.launched < 2; <-time.After(20 * time.Millisecond) {
		r.Prepare()
		if l.launched == 1 { // ansible-playbook's environment is learned from a run.
			result := r.Run(context.Background(), runner.Spec{UID: "heat", ID: "heat", Playbook: book, ExtraVars: []byte("\t\n{}")}, func(jobevent.Event) {})
			if result.Outcome.Verdict != jobevent.Succeeded {
				t.Fatalf("%+v", result.Outcome)
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the servers are not ready")
		}
	}
	if err := r.Root.Remove("heat"); err != nil {
		t.Fatal(err)
	}
}

// learner counts what was launched warm.
type learner struct {
	pool     *warm.Pool
	launched int
}

// Prepare implements runner.Launcher.
func (l *learner) Prepare(env []string) { _, _ = l.Launch(env) }

// Ended implements runner.Launcher.
func (l *learner) Ended(env []string) bool { return l.pool.Ended(env) }

// Launch implements runner.Launcher.
func (l *learner) Launch(env []string) (program, why string) {
	program, why = l.pool.Launch(env)
	if program != "" {
		l.launched++
	}
	return program, why
}

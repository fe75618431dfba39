// Package bench gives tests what a manager runs content with, without a manager: a runner
// of the real ansible-runner, a run directory, a directory for content, and a server for
// warm runs where they want one. Suites that watch a manager have test/harness/site
// instead, and runs that are scripted test/harness/script.
//
// The package does not say what a run should come to: that is what suites are for.
package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/ansible/warm"
	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/internal/process/proctree"
	"github.com/ensign-operator/ensign/internal/process/rundir"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// UID is that of the custom resource that runs are for, unless their spec has another.
const UID = "0b2e8f6a-uid"

// Place is a run directory, which benches may share one after the other.
type Place struct {
	Env    pyenv.Env
	Root   *rundir.Root
	Reaper *proctree.Reaper
	// Server is nil until Serve is called.
	Server *warm.Server
}

// Open takes over a run directory, as a manager does when it starts.
func Open(dir string, env pyenv.Env) (*Place, error) {
	root, reaper, err := process.TakeOver(dir, logr.Discard())
	return &Place{Env: env, Root: root, Reaper: reaper}, err
}

// Serve makes a server for warm runs, and ends the one before.
func (p *Place) Serve(o warm.Options) error {
	if err := p.endServer(); err != nil {
		return err
	}
	provide := (&runner.Runner{Root: p.Root}).Program
	server, err := warm.New(filepath.Join(p.Root.Path(), ".warm"), p.Env.Python, provide, p.Reaper, o)
	p.Server = server
	return err
}

func (p *Place) endServer() error {
	if p.Server == nil {
		return nil
	}
	return p.Server.Close()
}

// Close ends the server, and gives the run directory away.
func (p *Place) Close() error { return errors.Join(p.endServer(), p.Root.Close()) }

// Bench is a runner with content of its own, in a place.
type Bench struct {
	*runner.Runner
	Place *Place
	// Content is the directory of playbooks and roles, Runs the run directory.
	Content, Runs string

	tb     testing.TB
	number int
}

// New makes a bench with files as its content, in a place of its own that is closed after
// the test.
func New(tb testing.TB, env pyenv.Env, files map[string]string) *Bench {
	tb.Helper()
	return NewIn(tb, filepath.Join(scratch.Short(tb), "runs"), env, files)
}

// NewIn makes a bench like New, with a run directory of the test's choice.
func NewIn(tb testing.TB, runs string, env pyenv.Env, files map[string]string) *Bench {
	tb.Helper()
	place, err := Open(runs, env)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := place.Close(); err != nil {
			tb.Error(err)
		}
	})
	return place.Bench(tb, files)
}

// Bench makes a bench in the place, whose runs may be warm if the place has a server.
func (p *Place) Bench(tb testing.TB, files map[string]string) *Bench {
	tb.Helper()
	b := &Bench{
		Runner:  &runner.Runner{Root: p.Root, Reaper: p.Reaper, Binary: p.Env.Runner, Python: p.Env.Python, Env: p.Env.Environ()},
		Place:   p,
		Content: tb.TempDir(), Runs: p.Root.Path(), tb: tb,
	}
	scratch.Write(tb, b.Content, files)
	b.mayBeWarm()
	return b
}

// Serve makes a server for the bench's runs.
func (b *Bench) Serve(o warm.Options) {
	b.tb.Helper()
	if err := b.Place.Serve(o); err != nil {
		b.tb.Fatal(err)
	}
	b.mayBeWarm()
}

func (b *Bench) mayBeWarm() {
	if b.Place.Server != nil {
		b.Launcher = b.Place.Server
	}
}

// For is the same bench for another test, which it tells its troubles from now on.
func (b *Bench) For(tb testing.TB) {
	tb.Helper()
	b.tb = tb
}

// In is a path below the content.
func (b *Bench) In(names ...string) string {
	return filepath.Join(append([]string{b.Content}, names...)...)
}

// Next is an ID that no run of the bench has had.
func (b *Bench) Next() string {
	b.number++
	return fmt.Sprintf("run-%d", b.number)
}

// Do runs the spec, and returns the run's events too. A spec without UID, ID or variables
// gets some.
func (b *Bench) Do(ctx context.Context, spec runner.Spec) (runner.Result, []jobevent.Event) {
	if spec.UID == "" {
		spec.UID = UID
	}
	if spec.ID == "" {
		spec.ID = b.Next()
	}
	if spec.ExtraVars == nil {
		spec.ExtraVars = []byte("\t\n{}")
	}
	var events []jobevent.Event
	result := b.Run(ctx, spec, func(e jobevent.Event) { events = append(events, e) })
	return result, events
}

// Heat runs a play of one module again and again until hot says that a run was warm enough:
// a server begins when the first run wants it. These runs are of another custom resource.
func (b *Bench) Heat(hot func(runner.Result) bool) {
	b.tb.Helper()
	scratch.Write(b.tb, b.Content, map[string]string{"heat.yml": Play("- ping:\n")})
	b.Prepare()
	scratch.Eventually(b.tb, "a warm run", func() bool {
		b.tb.Helper()
		result, _ := b.Do(context.Background(), runner.Spec{UID: "heat", Playbook: b.In("heat.yml"), Timeout: scratch.WaitTimeout})
		if result.Outcome.Verdict != content.Succeeded {
			b.tb.Fatalf("a play that does nothing: %+v", result.Outcome)
		}
		return hot(result)
	})
}

// IsWarm reports whether a run was warm, its modules aside.
func IsWarm(result runner.Result) bool { return result.Warm }

// Play is a playbook of tasks on localhost, which gathers no facts.
func Play(tasks string) string {
	return "- hosts: localhost\n  gather_facts: false\n  tasks:\n" + Indented(tasks, "  ")
}

// Indented is a text with something before each line.
func Indented(text, indent string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(indent + line)
	}
	return b.String()
}

// Variables are those of a run for the custom resource, as a manager makes them.
func Variables(tb testing.TB, cr map[string]any, o extravars.Options) []byte {
	tb.Helper()
	vars, err := extravars.Build(cr, o)
	if err != nil {
		tb.Fatal(err)
	}
	encoded, err := vars.Encode()
	if err != nil {
		tb.Fatal(err)
	}
	return encoded
}

package warm

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/ansible/warm"
	"github.com/ensign-operator/ensign/internal/process/proctree"
	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness/cores"
	"github.com/ensign-operator/ensign/test/harness/scratch"
	"github.com/ensign-operator/ensign/test/runs/bench"
)

const (
	waitTimeout = scratch.WaitTimeout
	// lookPause is after how long a server is missed, at the latest when it is over twice.
	lookPause = 4 * time.Second
)

// counted is a bench that counts what is forked, and what is refused with which reason.
type counted struct {
	*bench.Bench
	t       *testing.T // that is running
	whole   *testing.T // that the bench lives as long as
	api     *controlplane.Cluster
	env0    []string // what the server was started for
	home    string
	environ []string // what the programs of the Python environment are run with

	mu       sync.Mutex
	refused  []string       // programs, with the reasons
	forked   map[string]int // programs
	withheld bool           // is the server: runs are cold, and as warm ones in all else
	off      []string       // mechanisms
	// expectOff is set before the first server starts.
	expectOff bool
}

func newBench(t *testing.T, files map[string]string) *counted {
	t.Helper()
	return newBenchOf(t, cores.Find(t, ".venv"), files)
}

// newBenchOf has a Python environment, with a manager's environment.
func newBenchOf(t *testing.T, found pyenv.Env, files map[string]string) *counted {
	t.Helper()
	found, _ = found.WithUTF8Locale(t.Context())
	b := &counted{Bench: bench.New(t, found, files), t: t, whole: t, home: t.TempDir(), environ: found.Environ(), forked: map[string]int{}}
	b.plain()
	return b
}

// plain gives the bench a runner with a manager's environment and further variables.
func (b *counted) plain(further ...string) {
	place := b.Place
	b.Runner = &runner.Runner{
		Root: place.Root, Reaper: place.Reaper, Launcher: b, Binary: place.Env.Runner, Python: place.Env.Python,
		SkipFacts: true, Env: b.env(further...),
	}
}

// For is for the test that is running from now on.
func (b *counted) For(t *testing.T) {
	b.t = t
	b.Bench.For(t)
}

// env is a manager's environment whose home directory is the test's.
func (b *counted) env(further ...string) []string {
	return append(slices.Clone(b.environ), append([]string{"HOME=" + b.home}, further...)...)
}

// serve starts a server for runs with this environment, unless that is what it is for.
func (b *counted) serve(env []string) {
	b.t.Helper()
	if b.Place.Server != nil && slices.Equal(b.env0, env) {
		return
	}
	b.Serve(warm.Options{
		Logger: logger(b.whole), Content: []string{b.Content}, LookPause: lookPause,
		OnModule: func(reason string) { b.note("python", reason) },
		OnOff:    b.noteOff,
	})
	b.Launcher = b
	b.env0 = slices.Clone(env)
}

// note takes note that a program was forked, or why not.
func (b *counted) note(program, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if reason == "" {
		b.forked[program]++
	} else {
		b.refused = append(b.refused, program+": "+warm.WithoutDetail(reason))
	}
}

// noteOff takes note of a mechanism that is off, which few tests expect.
func (b *counted) noteOff(mechanism string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.off = append(b.off, mechanism)
	if !b.expectOff {
		b.whole.Errorf("%s is off; the log has the cause", mechanism)
	}
}

// refusals are what was refused since the last call.
func (b *counted) refusals() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.refused
	b.refused, b.forked = nil, map[string]int{}
	return got
}

// heat waits until runs are warm. What is cold in any run is all that may be.
func (b *counted) heat(cold ...string) {
	b.t.Helper()
	b.serve(b.Env)
	b.refusals()
	b.Heat(func(runner.Result) bool {
		return !slices.ContainsFunc(b.refusals(), func(refusal string) bool { return !slices.Contains(cold, refusal) })
	})
}

// Prepare implements runner.Launcher.
func (b *counted) Prepare(env []string) { b.Place.Server.Prepare(env) }

// Start implements runner.Launcher, and notes what came of it.
func (b *counted) Start(cmd *exec.Cmd) (leader proctree.Leader, why string) {
	b.mu.Lock()
	withheld := b.withheld
	b.mu.Unlock()
	if withheld {
		return proctree.Leader{}, "withheld"
	}
	leader, why = b.Place.Server.Start(cmd)
	b.note("ansible-runner", why)
	return leader, why
}

// play runs a playbook and gives its events.
func (b *counted) play(name string) (runner.Result, []jobevent.Event) {
	b.t.Helper()
	return b.playUntil(context.Background(), name)
}

func (b *counted) playUntil(ctx context.Context, name string) (runner.Result, []jobevent.Event) {
	b.t.Helper()
	return b.Do(ctx, runner.Spec{
		Playbook: b.In(name), Timeout: waitTimeout, ExtraVars: fmt.Appendf(nil, "\t\n{\"place\": %q}", b.In("out")), Kubeconfig: []byte("{}"),
	})
}

func logger(t *testing.T) logr.Logger {
	t.Helper()
	return funcr.New(func(prefix, args string) { t.Log(prefix, args) }, funcr.Options{})
}

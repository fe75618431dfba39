package warm

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
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
	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/internal/process/proctree"
	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness/cores"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

const (
	patience = scratch.Patience
	// lookPause is after how long a server is missed, at the latest when it is over twice.
	lookPause = 4 * time.Second
)

// bench is a runner with servers, and a content directory.
type bench struct {
	t     *testing.T // that is running
	whole *testing.T // that the bench lives as long as
	api   *controlplane.Cluster
	*runner.Runner
	server  *warm.Server
	reaper  *proctree.Reaper
	env0    []string // what the server was started for
	content string
	home    string
	environ []string // what the programs of the Python environment are run with
	runs    string

	mu       sync.Mutex
	refused  []string       // programs, with the reasons
	forked   map[string]int // programs
	withheld bool           // is the server: runs are cold, and as warm ones in all else
	count    int            // of runs
}

func newBench(t *testing.T, files map[string]string) *bench {
	t.Helper()
	return newBenchOf(t, cores.Find(t, ".venv"), files)
}

// newBenchOf has a Python environment, with a manager's environment.
func newBenchOf(t *testing.T, found pyenv.Env, files map[string]string) *bench {
	t.Helper()
	b := &bench{t: t, whole: t, content: t.TempDir(), home: t.TempDir(), runs: filepath.Join(scratch.Short(t), "runs"), forked: map[string]int{}}
	scratch.Write(t, b.content, files)
	found, _ = found.WithUTF8Locale(t.Context())
	b.environ = found.Environ()
	root, reaper, err := process.TakeOver(b.runs, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	b.reaper = reaper
	t.Cleanup(func() {
		b.closeServer()
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	b.Runner = &runner.Runner{
		Root: root, Reaper: reaper, Launcher: b, Binary: found.Runner, Python: found.Python,
		Env: b.env(), SkipFacts: true,
	}
	return b
}

// env is a manager's environment whose home directory is the test's.
func (b *bench) env(further ...string) []string {
	return append(slices.Clone(b.environ), append([]string{"HOME=" + b.home}, further...)...)
}

// serve starts a server for runs with this environment, unless that is what it is for.
func (b *bench) serve(env []string) {
	b.t.Helper()
	if b.server != nil && slices.Equal(b.env0, env) {
		return
	}
	b.closeServer()
	var err error
	b.server, err = warm.New(filepath.Join(b.runs, ".warm"), b.Python, b.Program, b.reaper, warm.Options{
		Logger: logger(b.whole), Content: []string{b.content}, LookPause: lookPause,
		OnModule: func(reason string) { b.note("python", reason) },
		OnOff:    func(mechanism string) { b.whole.Errorf("%s is off: known.json lacks what is installed", mechanism) },
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.env0 = slices.Clone(env)
}

func (b *bench) closeServer() {
	if b.server == nil {
		return
	}
	if err := b.server.Close(); err != nil {
		b.whole.Error(err)
	}
}

// note takes note that a program was forked, or why not.
func (b *bench) note(program, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if reason == "" {
		b.forked[program]++
	} else {
		b.refused = append(b.refused, program+": "+warm.WithoutDetail(reason))
	}
}

// refusals are what was refused since the last call.
func (b *bench) refusals() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.refused
	b.refused, b.forked = nil, map[string]int{}
	return got
}

// heat waits until runs are warm. What is cold in any run is all that may be.
func (b *bench) heat(cold ...string) {
	b.t.Helper()
	scratch.Write(b.t, b.content, map[string]string{"heat.yml": "- hosts: localhost\n  gather_facts: false\n  tasks: [{ping: }]\n"})
	b.serve(b.Env)
	b.Runner.Prepare()
	for deadline := time.Now().Add(patience); ; {
		b.refusals()
		result, _ := b.play("heat.yml")
		if result.Outcome.Verdict != jobevent.Succeeded {
			b.t.Fatalf("a play that does nothing: %+v", result.Outcome)
		}
		if !slices.ContainsFunc(b.refusals(), func(refusal string) bool { return !slices.Contains(cold, refusal) }) {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatal("no run is warm")
		}
	}
}

// Prepare implements runner.Launcher.
func (b *bench) Prepare(env []string) { b.server.Prepare(env) }

// Start implements runner.Launcher, and notes what came of it.
func (b *bench) Start(cmd *exec.Cmd) (leader proctree.Leader, why string) {
	b.mu.Lock()
	withheld := b.withheld
	b.mu.Unlock()
	if withheld {
		return proctree.Leader{}, "withheld"
	}
	leader, why = b.server.Start(cmd)
	b.note("ansible-runner", why)
	return leader, why
}

// play runs a playbook and gives its events.
func (b *bench) play(name string) (runner.Result, []jobevent.Event) {
	b.t.Helper()
	return b.playUntil(context.Background(), name)
}

func (b *bench) playUntil(ctx context.Context, name string) (runner.Result, []jobevent.Event) {
	b.t.Helper()
	b.count++
	var events []jobevent.Event
	result := b.Run(ctx, runner.Spec{
		UID: "0b2e8f6a-uid", ID: fmt.Sprintf("run-%d", b.count), Playbook: filepath.Join(b.content, name), Timeout: patience,
		ExtraVars: []byte("\t\n" + fmt.Sprintf(`{"place": %q}`, filepath.Join(b.content, "out"))), Kubeconfig: []byte("{}"),
	}, func(e jobevent.Event) { events = append(events, e) })
	return result, events
}

func logger(t *testing.T) logr.Logger {
	t.Helper()
	return funcr.New(func(prefix, args string) { t.Log(prefix, args) }, funcr.Options{})
}

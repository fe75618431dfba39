package warm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/ansible/warm"
	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

const (
	// patience is for a machine that has much else to do.
	patience = 3 * time.Minute
	// lookPause is after how long a server is missed, at the latest when it is over twice.
	lookPause = 4 * time.Second
)

// bench is a runner with servers, and a content directory.
type bench struct {
	t     *testing.T // that is running
	whole *testing.T // that the bench lives as long as
	api   *controlplane.Cluster
	*runner.Runner
	pool    *warm.Pool
	content string
	home    string
	environ []string // what the programs of the Python environment are run with
	runs    string

	mu       sync.Mutex
	refused  []string       // programs, with the reasons
	forked   map[string]int // programs
	launched string         // what the last run was to start with
	withheld bool           // are the servers: runs are cold, and as warm ones in all else
	count    int            // of runs
}

func newBench(t *testing.T, files map[string]string) *bench {
	t.Helper()
	b := &bench{t: t, whole: t, content: t.TempDir(), home: t.TempDir(), runs: filepath.Join(scratch.Short(t), "runs"), forked: map[string]int{}}
	scratch.Write(t, b.content, files)
	found, err := pyenv.Find(pyenv.Search{Dir: scratch.Repository(t), Environ: managerEnv()})
	if err != nil {
		t.Fatal(err)
	}
	found, _ = found.WithUTF8Locale(t.Context())
	b.environ = found.Environ()
	root, reaper, err := runner.TakeOver(b.runs, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	b.pool, err = warm.NewPool(filepath.Join(b.runs, ".warm"), warm.Programs{
		Standin: standin(t), Python: found.Python,
	}, reaper, warm.Options{Logger: logger(t), Refused: b.refuse, Forked: b.fork, LookPause: lookPause})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.pool.Close(); err != nil {
			t.Error(err)
		}
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

// managerEnv has no locale, as most containers have none.
func managerEnv() []string {
	return []string{"PATH=/usr/bin:/bin"}
}

// env is a manager's environment whose home directory is the test's.
func (b *bench) env(further ...string) []string {
	return append(slices.Clone(b.environ), append([]string{"HOME=" + b.home}, further...)...)
}

func (b *bench) fork(program string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forked[program]++
}

func (b *bench) refuse(program, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused = append(b.refused, program+": "+warm.WithoutDetail(reason))
}

// refusals are what was refused since the last call.
func (b *bench) refusals() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.refused
	b.refused, b.forked = nil, map[string]int{}
	return got
}

// heat starts the servers, and has them learn the environment of ansible-playbook. What
// is cold in any run is all that may be.
func (b *bench) heat(cold ...string) {
	b.t.Helper()
	scratch.Write(b.t, b.content, map[string]string{"heat.yml": "- hosts: localhost\n  gather_facts: false\n  tasks: [{ping: }]\n"})
	b.Runner.Prepare()
	for deadline := time.Now().Add(patience); ; {
		b.awaitServers(deadline)
		b.refusals()
		result, _ := b.play("heat.yml", false)
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

// awaitServers waits until a run would be launched warm.
func (b *bench) awaitServers(deadline time.Time) {
	b.t.Helper()
	for {
		if program := b.launchable(); program != "" {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatal("the servers are not ready")
		}
		<-time.After(20 * time.Millisecond)
	}
}

// launchable asks the launcher with what a run would ask.
func (b *bench) launchable() string {
	b.Runner.Prepare()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.launched
}

// Prepare implements runner.Launcher.
func (b *bench) Prepare(env []string) { _, _ = b.Launch(env) }

// Ended implements runner.Launcher.
func (b *bench) Ended(env []string) bool { return b.pool.Ended(env) }

// Launch implements runner.Launcher, and notes what came of it.
func (b *bench) Launch(env []string) (program, why string) {
	b.mu.Lock()
	withheld := b.withheld
	b.mu.Unlock()
	if withheld {
		return "", "withheld"
	}
	program, why = b.pool.Launch(env)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.launched = program
	return program, why
}

// play runs a playbook and gives its events.
func (b *bench) play(name string, cold bool) (runner.Result, []jobevent.Event) {
	b.t.Helper()
	return b.playUntil(context.Background(), name, cold)
}

func (b *bench) playUntil(ctx context.Context, name string, cold bool) (runner.Result, []jobevent.Event) {
	b.t.Helper()
	b.count++
	var events []jobevent.Event
	result := b.Run(ctx, runner.Spec{
		UID: "0b2e8f6a-uid", ID: fmt.Sprintf("run-%d", b.count), Playbook: filepath.Join(b.content, name), Cold: cold, Timeout: patience,
		ExtraVars: []byte("\t\n" + fmt.Sprintf(`{"place": %q}`, filepath.Join(b.content, "out"))), Kubeconfig: []byte("{}"),
	}, func(e jobevent.Event) { events = append(events, e) })
	return result, events
}

func logger(t *testing.T) logr.Logger {
	t.Helper()
	return funcr.New(func(prefix, args string) { t.Log(prefix, args) }, funcr.Options{})
}

// standin builds the stand-in.
func standin(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "warm-exec")
	build := exec.Command("go", "build", "-o", program, "./cmd/warm-exec")
	build.Dir, build.Env = scratch.Repository(t), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// marked lists the processes with this text in their environment.
func marked(t *testing.T, text string) []string {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		environ, _ := os.ReadFile(filepath.Join(entry, "environ")) // It may have ended.
		if strings.Contains(string(environ), text) {
			found = append(found, filepath.Base(entry))
		}
	}
	return found
}

package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/proctree"
	"github.com/ensign-operator/ensign/internal/ansible/rundir"
	"github.com/ensign-operator/ensign/internal/ansible/runner/program"
)

// programDir is where the program of runs is, in the directory of all runs.
const programDir = ".program"

// defaultGrace is the time between TERM and KILL. A pod of operators written for
// the base image has 10 s to end, of which the statuses need some.
const defaultGrace = 4 * time.Second

// The causes of contexts that a run's own limits ended.
var (
	errTimeout = errors.New("the timeout of the watch")
	errIdle    = errors.New("no job event and no output")
)

// Runner starts runs. Root, Binary and Python are required. It must not be changed or
// copied once it is in use; Run may be called at the same time.
type Runner struct {
	// Root holds the directories of the runs.
	Root *rundir.Root
	// Binary is ansible-runner's absolute path. Its directory comes first on the
	// PATH of a run, so that ansible-playbook is the one beside it.
	Binary string
	// Python is the absolute path of the interpreter that ansible-runner is for. Runs
	// execute their program with it, and it is localhost's in the default inventory.
	Python string
	// Env is the manager's environment as "NAME=value". A run gets it without
	// what would lead around the API proxy or is meant for the manager alone.
	Env []string
	// DropEnv names variables that runs do not get either.
	DropEnv []string
	// RolesPath is searched for further roles, such as the dependencies of a
	// watch's role, and CollectionsPath for collections. Absolute paths; nil
	// leaves what Env and Ansible's configuration say.
	RolesPath, CollectionsPath []string
	// Args are further arguments of ansible-playbook, quoted as for a shell.
	Args string
	// Inventory is a file or directory that each run gets a copy of; "" for
	// localhost alone.
	Inventory string
	// SkipFacts keeps a role's play from gathering facts.
	SkipFacts bool
	// Grace is the time between TERM and KILL; 4 s when it is 0.
	Grace time.Duration
	// IdleTimeout ends a run of which nothing is heard for so long, neither a job
	// event nor output; 0 does not.
	IdleTimeout time.Duration
	// Owner marks the processes of runs for a successor; nil if nobody is to find them
	// after this process.
	Owner *proctree.Owner
	// Launcher may know a program that does what Binary does in less time; nil if there
	// is none.
	Launcher Launcher
	// Killed counts the processes that the kernel has ended for want of memory, among
	// those that share this process' limit; nil if nobody counts them.
	Killed func() uint64
	// Ready is asked right before each start whether Binary may be started, and may take
	// its time; nil if it always may. Its error, which becomes the run's unless ctx has
	// ended, must be the same for the same fault.
	Ready func(ctx context.Context) error

	own proctree.Owner
}

// TakeOver opens the directory of runs, ends what a killed predecessor left at
// work there, and then removes what those processes used. The owner is for
// Runner.Owner.
func TakeOver(path string, log logr.Logger) (*rundir.Root, *proctree.Owner, error) {
	var owner *proctree.Owner
	root, err := rundir.TakeOver(path, func(path string) {
		owner = proctree.NewOwner(path, rand.Text())
		ended := owner.EndAll(defaultGrace)
		if ended.Count > 0 {
			log.Info("ended processes of runs that a killed predecessor left", "count", ended.Count)
		}
		if ended.Left > 0 {
			log.Info("processes of runs that a killed predecessor left may not be ended, or are held by the kernel", "count", ended.Left)
		}
	})
	return root, owner, err
}

// Spec is one run.
type Spec struct {
	// UID is the CR's. Two runs for one UID are never live at once.
	UID string
	// Watch and CR say in the artifact what the run is for, as the log does.
	Watch, CR string
	// ID is unique among the runs of this manager and names the artifact.
	ID string
	// Role is a role's name in RolesPath, or ns.collection.role with RolesPath "".
	// Playbook is an absolute path. One of the two is set.
	Role, RolesPath, Playbook string
	// ExtraVars is what Ansible reads as extra variables, byte for byte.
	ExtraVars []byte
	// Kubeconfig is what the run reaches the API with. Without one the run
	// reaches no API at all.
	Kubeconfig []byte
	// Cold keeps the launcher out of the run.
	Cold bool
	// Verbosity is the number of -v, 0 to 7.
	Verbosity int
	// Timeout ends the run; 0 does not.
	Timeout time.Duration
	// MaxArtifacts is how many artifacts of this CR are kept; 0 keeps all.
	MaxArtifacts int
}

// Result is what came out of a run.
type Result struct {
	Outcome        jobevent.Outcome
	Summary        jobevent.Summary
	Started, Ended time.Time
	// Warm is true when what the launcher started was warm.
	Warm bool
}

// Run runs the spec and returns when no process of it is left. The end of ctx
// ends it: TERM to all its processes at once, KILL after the grace time. observe
// is called with each job event, in order, on one goroutine; the run waits for
// it. What could not be started has an Outcome that says why and what to do.
func (r *Runner) Run(ctx context.Context, spec Spec, observe func(jobevent.Event)) Result {
	result := Result{Started: time.Now()}
	dir, err := r.Root.Prepare(spec.UID, spec.ID, rundir.Inputs{
		ExtraVars:  spec.ExtraVars,
		Kubeconfig: spec.Kubeconfig,
		Inventory:  r.Inventory,
		Python:     r.Python,
		Pipelining: r.mayBeWarm(spec) && pipelines(r.passed()),
	})
	if err != nil {
		logr.FromContextOrDiscard(ctx).V(1).Info("a run directory could not be prepared", "error", err.Error())
		return r.conclude(result, explain(crashed(err), result.Summary, nil))
	}
	keep := record{dir: dir, log: logr.FromContextOrDiscard(ctx).WithValues("run", spec.ID)}
	killed := r.killed()
	ending, warm := r.execute(ctx, spec, &keep, func(e jobevent.Event) {
		e.TaskPath = r.place(spec, e.TaskPath, dir.Project)
		result.Summary.Fold(e)
		keep.event(e)
		observe(e)
	})
	ending = explain(ending, result.Summary, keep.err)
	if r.killed() > killed {
		ending.Hint = killedHint
	}
	result = r.conclude(result, ending)
	result.Warm = warm
	keep.result(result, ending)
	keep.close(spec.MaxArtifacts)
	return result
}

func (r *Runner) conclude(result Result, ending jobevent.Ending) Result {
	result.Outcome = jobevent.Judge(ending, result.Summary)
	result.Ended = time.Now()
	return result
}

func crashed(err error) jobevent.Ending {
	return jobevent.Ending{ExitCode: -1, Cause: jobevent.Crashed, Err: err}
}

// execute starts the command of a run in the record's directory and sees it
// through. It tells how it ended, and whether it was warm.
func (r *Runner) execute(ctx context.Context, spec Spec, keep *record, on func(jobevent.Event)) (ending jobevent.Ending, warm bool) {
	unready := r.ready(ctx)
	if err := context.Cause(ctx); err != nil {
		return jobevent.Ending{ExitCode: -1, Cause: jobevent.Interrupted, Err: err}, false
	}
	if unready != nil {
		return crashed(unready), false
	}
	nonce, err := newNonce()
	if err != nil {
		return crashed(err), false
	}
	path, err := program.Provide(filepath.Join(r.Root.Path(), programDir))
	if err != nil {
		return crashed(err), false
	}
	command := r.command(spec, keep.dir, path, nonce)
	keep.command(spec, command)
	ctx, end := limit(ctx, spec.Timeout)
	defer end(nil)
	p, launched, err := r.start(spec, command, nonce)
	if err != nil {
		return crashed(err), false
	}
	p.read(on)
	if r.IdleTimeout > 0 {
		go func() {
			if awaitIdle(ctx, r.IdleTimeout, p.stdout, p.stderr) {
				end(fmt.Errorf("%w for %s", errIdle, r.IdleTimeout))
			}
		}()
	}
	ending = p.wait(ctx, r.grace())
	ending.Output = withoutRandomNames(ending.Output, keep.dir.Project)
	return ending, launched()
}

// limit returns a context that ends with ctx, the timeout of a run, if that is not
// 0, and with end.
func limit(ctx context.Context, timeout time.Duration) (limited context.Context, end context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	release := func() {}
	if timeout > 0 {
		ctx, release = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%w is %s", errTimeout, timeout))
	}
	return ctx, func(cause error) {
		cancel(cause)
		release()
	}
}

func (r *Runner) ready(ctx context.Context) error {
	if r.Ready == nil {
		return nil
	}
	return r.Ready(ctx)
}

func (r *Runner) grace() time.Duration {
	if r.Grace > 0 {
		return r.Grace
	}
	return defaultGrace
}

func (r *Runner) owner() *proctree.Owner {
	if r.Owner != nil {
		return r.Owner
	}
	return &r.own
}

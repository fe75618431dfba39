package runner

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/runner/program"
	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/internal/process/proctree"
	"github.com/ensign-operator/ensign/internal/process/rundir"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Runner starts runs. Root, Binary and Python are required. A Runner must not be changed
// or copied after its first use. Run may be called concurrently.
type Runner struct {
	// Root holds the directories of the runs.
	Root *rundir.Root
	// Binary is the absolute path of ansible-runner. Its directory comes first in the PATH
	// of a run, so that the run uses the ansible-playbook in the same directory.
	Binary string
	// Python is the absolute path of the interpreter for which ansible-runner is installed.
	// Runs execute ensign_run.py with it. In the default inventory it is also the
	// interpreter of localhost.
	Python string
	// Env is the manager's environment as "NAME=value". A run gets it without the variables
	// that would bypass the API proxy or are only for the manager (droppedVariables).
	Env []string
	// DropEnv names further variables that runs do not get.
	DropEnv []string
	// RolesPath and CollectionsPath are absolute paths in which Ansible looks for roles,
	// such as dependencies of a watch's role, and for collections. nil keeps the setting of
	// Env or of Ansible's configuration.
	RolesPath, CollectionsPath []string
	// Args are further arguments of ansible-playbook, quoted as in a shell.
	Args string
	// Inventory is a file or directory. Each run gets a copy of it. "" is an inventory with
	// only localhost.
	Inventory string
	// SkipFacts prevents a role's play from gathering facts.
	SkipFacts bool
	// Grace is the time between TERM and KILL; 0 means 4 s.
	Grace time.Duration
	// IdleTimeout ends a run that has reported no job event and printed nothing for so
	// long; 0 means never.
	IdleTimeout time.Duration
	// Reaper makes the processes of runs recognizable to a successor; nil if nobody is to
	// find them after this process.
	Reaper *proctree.Reaper
	// Launcher may start a program that does the same as Binary in less time. nil means
	// that every run is cold.
	Launcher Launcher
	// OOMKills returns how many processes the kernel's OOM killer has ended so far in the
	// manager's control group; nil if that is not known.
	OOMKills func() uint64
	// SettingName returns how messages name a setting of the manager, given its field of
	// options.Options; nil: as that field.
	SettingName func(field string) string
	// Ready is called before each start, may block, and returns nil if Binary may be
	// started. Otherwise its error becomes the run's, unless ctx has ended; the same fault
	// must give the same error. nil means always ready.
	Ready func(ctx context.Context) error

	own proctree.Reaper
}

// Spec describes one run.
type Spec struct {
	// UID is the CR's. Two runs for one UID never run at the same time.
	UID string
	// Watch and CR describe the run in its artifact, in the same words as the log.
	Watch, CR string
	// Resource is the CR as GROUP/VERSION/KIND/NAMESPACE/NAME, which the path of the inventory has.
	Resource string
	// ID is unique among the runs of this manager. It is part of the artifact's name.
	ID string
	// Role is a role's name in RolesPath, or ns.collection.role with RolesPath "".
	// Playbook is an absolute path. Either Role or Playbook is set.
	Role, RolesPath, Playbook string
	// ExtraVars is the content of the file that Ansible reads as extra variables.
	ExtraVars []byte
	// Kubeconfig is the kubeconfig of the run. Without it the run cannot reach the API.
	Kubeconfig []byte
	// Cold starts the run without the Launcher.
	Cold bool
	// Verbosity is the number of -v, 0 to 7.
	Verbosity int
	// Timeout ends the run; 0 means no timeout.
	Timeout time.Duration
	// MaxArtifacts is how many artifacts of this CR are kept; 0 means all.
	MaxArtifacts int
}

// Result is the result of a run.
type Result struct {
	Outcome content.Outcome
	Summary jobevent.Summary
	// Started and Ended are when the run did.
	Started, Ended time.Time
	// Warm is true if the run was a warm run.
	Warm bool
}

// Start returns how the run was started, as the metrics count it.
func (r *Result) Start() string {
	if r.Warm {
		return jobevent.StartWarm
	}
	return jobevent.StartCold
}

// Run executes the spec and returns after the last process of the run has ended. When ctx
// ends, Run sends TERM to all processes of the run, and KILL after the grace time. It
// calls observe with each job event, in order, on one goroutine; the run waits for
// observe. If the run cannot be started, the Outcome says why and what to do.
func (r *Runner) Run(ctx context.Context, spec Spec, observe func(jobevent.Event)) Result {
	result := Result{Started: time.Now()}
	dir, err := r.Root.Prepare(spec.UID, spec.ID, rundir.Inputs{
		ExtraVars:  spec.ExtraVars,
		Kubeconfig: spec.Kubeconfig,
		Resource:   spec.Resource,
		Inventory:  r.Inventory,
		Python:     r.Python,
		Pipelining: r.mayBeWarm(spec) && usePipelining(r.inheritedEnv()),
	})
	if err != nil {
		logr.FromContextOrDiscard(ctx).V(1).Info("a run directory could not be prepared", "error", err.Error())
		return r.finish(result, r.addHint(crashed(err), result.Summary, nil))
	}
	rec := record{dir: dir, log: logr.FromContextOrDiscard(ctx).WithValues("run", spec.ID), setting: r.setting}
	oomKillsBefore := r.oomKills()
	ending, warm := r.execute(ctx, spec, &rec, func(e jobevent.Event) {
		e.TaskPath = r.shortTaskPath(spec, e.TaskPath, dir.Project)
		result.Summary.Fold(e)
		rec.event(e)
		observe(e)
	})
	ending = r.addHint(ending, result.Summary, rec.err)
	if r.oomKills() > oomKillsBefore {
		ending.Hint = r.oomHint()
	}
	result = r.finish(result, ending)
	result.Warm = warm
	rec.result(result, ending)
	rec.close(spec.MaxArtifacts)
	return result
}

func (r *Runner) finish(result Result, ending jobevent.ProcessExit) Result {
	ending.RunLimit = r.setting("MaxConcurrentRuns")
	result.Outcome = jobevent.DetermineOutcome(ending, result.Summary)
	result.Ended = time.Now()
	return result
}

func crashed(err error) jobevent.ProcessExit {
	return jobevent.ProcessExit{ExitCode: -1, Cause: jobevent.Crashed, Err: err}
}

// execute starts the run's command and waits for its end. It returns how the processes
// ended, and whether the run was warm.
func (r *Runner) execute(ctx context.Context, spec Spec, rec *record, handle func(jobevent.Event)) (how jobevent.ProcessExit, warm bool) {
	notReady := r.ready(ctx)
	if err := context.Cause(ctx); err != nil {
		return jobevent.ProcessExit{ExitCode: -1, Cause: jobevent.Interrupted, Err: err}, false
	}
	if notReady != nil {
		return crashed(notReady), false
	}
	nonce, err := process.NewNonce()
	if err != nil {
		return crashed(err), false
	}
	path, err := r.Program()
	if err != nil {
		return crashed(err), false
	}
	command := r.command(spec, rec.dir, path, nonce)
	rec.command(spec, command)
	ctx, end := process.WithTimeout(ctx, spec.Timeout)
	defer end(nil)
	var printed output
	p, warm, err := r.start(spec, command, nonce, func(records io.Reader) error { return printed.decode(records, handle) })
	if err != nil {
		return crashed(err), false
	}
	if r.IdleTimeout > 0 {
		go func() {
			if p.WaitUntilIdle(ctx, r.IdleTimeout) {
				end(fmt.Errorf("%w for %s", process.ErrIdle, r.IdleTimeout))
			}
		}()
	}
	code, cause, err := p.Wait(ctx, r.grace())
	return ending(code, cause, err, withoutRandomNames(printed.text(p.Printed.String()), rec.dir.Project)), warm
}

// Program makes sure that the program of runs, ensign_run.py, is in the root of the run directories, and
// returns its path.
func (r *Runner) Program() (path string, err error) {
	return program.Provide(r.programDir())
}

// programDir returns the directory of ensign_run.py in the root of the run directories.
func (r *Runner) programDir() string { return filepath.Join(r.Root.Path(), ".program") }

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
	return process.DefaultGrace
}

func (r *Runner) setting(field string) string {
	if r.SettingName == nil {
		return "Options." + field
	}
	return r.SettingName(field)
}

func (r *Runner) reaper() *proctree.Reaper {
	if r.Reaper != nil {
		return r.Reaper
	}
	return &r.own
}

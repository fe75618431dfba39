package operator

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/engine"
	"github.com/ensign-operator/ensign/internal/ansible/extravars"
	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/internal/observe/coldruns"
	"github.com/ensign-operator/ensign/internal/observe/metrics"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// python finds the Python environment of runs, once, when something needs it.
type python struct {
	mu    sync.Mutex
	found bool
	env   pyenv.Env
	info  pyenv.Info
}

// find returns the environment that the settings name, which is the same at each call. o has
// Ansible's settings.
func (p *python) find(ctx context.Context, o config.Options) (pyenv.Env, pyenv.Info, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found {
		return p.env, p.info, nil
	}
	env, err := findPython(ctx, o)
	if err != nil {
		return pyenv.Env{}, pyenv.Info{}, err
	}
	info, err := env.Inspect(ctx)
	if err != nil {
		return pyenv.Env{}, pyenv.Info{}, err
	}
	p.found, p.env, p.info = true, env, info
	return env, info, nil
}

// findPython returns the environment that the settings name, with a locale in UTF-8.
func findPython(ctx context.Context, o config.Options) (pyenv.Env, error) {
	env, err := pyenv.Find(pyenv.Search{Dir: o.Dir, Executable: o.Executable, Environ: o.Env.List()})
	if err != nil {
		return pyenv.Env{}, err
	}
	if env.VirtualEnvError != "" {
		o.Logger.Info("WARNING: the Python environment that VIRTUAL_ENV names cannot be used, so runs use another one; install ansible-runner and ansible-core in it, or unset VIRTUAL_ENV",
			"reason", env.VirtualEnvError, "used", env.Bin)
	}
	env, replaced := env.WithUTF8Locale(ctx)
	if len(replaced) > 0 {
		o.Logger.Info("WARNING: runs use the locale C.UTF-8, because these environment variables name a locale that is not installed or not in UTF-8", "variables", replaced)
	}
	return env, nil
}

// ansibleBackend has the watches of roles and playbooks.
type ansibleBackend struct {
	options config.Options
	python  *python
	// ready is called before each run, and may be nil.
	ready func(ctx context.Context) error

	watches []watches.Watch
	info    pyenv.Info
	checker *pyenv.Checker
	runner  *runner.Runner
	warm    *warmServer // nil: all runs are cold
	content []string    // files that runs may read
	// userMetrics is true where roles may post metrics.
	userMetrics bool
	// runDir is the directory of runs; "" if there is none.
	runDir string
	// digests holds engine.Engine.ContentDigest for each watch.
	digests map[schema.GroupVersionKind]string
	// sops is true if the collection community.sops is installed.
	sops      bool
	all       *components
	observers []engine.Observer
}

func (*ansibleBackend) claims(w Watch) bool { return w.Engine == nil && isAnsible(w.Watch) }
func (a *ansibleBackend) keepsServer() bool { return a.warm != nil }

// isAnsible reports whether the content of the watch is a role or playbook.
func isAnsible(w watches.Watch) bool { return !isChart(w) && w.Custom == nil }

// prepare finds the Python environment, proves that it does not evaluate text of CRs, and makes
// the runner.
func (a *ansibleBackend) prepare(ctx context.Context, list []Watch, at runDirs) error {
	o := a.options.WithAnsibleSettings()
	a.watches = plain(list)
	env, info, err := a.python.find(ctx, o)
	if err != nil {
		return err
	}
	a.info = info
	if at.root != nil {
		a.runDir = at.root.Path()
	}
	paths := o.SearchPaths()
	collectionsPath := slices.Concat(paths.DefaultCollections, paths.Collections, info.CollectionDirs)
	trees := watches.Trees(collectionsPath)
	warnOfOldCollection(o.Logger, trees)
	a.sops = info.HasCollection("community.sops", collectionsPath...)
	if a.digests, err = a.digestWatches(paths.Roles, collectionsPath, o.AnsibleConfig()); err != nil {
		return err
	}
	if a.checker, err = newChecker(env, info); err != nil {
		return err
	}
	if err := a.checker.Check(ctx); err != nil {
		return err
	}
	a.runner = newRunner(o, paths, env, at)
	a.runner.Ready = func(ctx context.Context) error {
		if err := a.checker.Check(ctx); err != nil {
			return fmt.Errorf("the Python environment has changed since this operator started: %w", err)
		}
		if a.ready == nil {
			return nil
		}
		return a.ready(ctx)
	}
	if len(inJobs(list, false)) == 0 {
		o.Cold = true // A Job has one run.
	}
	a.content = a.allContentPaths(paths.Roles, trees)
	a.nameChanges(o.AnsibleConfig())
	a.warm = newWarmServer(o, env, a.runner, a.content)
	o.Logger.Info("runs have a Python environment", "ansibleCore", info.AnsibleCore, "ansibleRunner", info.AnsibleRunner, "python", env.Python)
	return nil
}

// connect adds the parts that only runs of Ansible have: the endpoint for metrics of roles, and the
// watch over those that stay cold. Then the environment of runs is complete.
func (a *ansibleBackend) connect(c *components) error {
	a.all = c
	if err := a.warm.registerMetrics(c.registerer); err != nil {
		return err
	}
	for _, o := range c.observers {
		if sees, ok := o.(engine.Observer); ok {
			a.observers = append(a.observers, sees)
		}
	}
	if !a.options.Cold {
		c.observers = append(c.observers, a.coldRuns(c.counters))
	}
	if err := a.addUserMetrics(c); err != nil {
		return err
	}
	a.runner.Prepare()
	return nil
}

func (a *ansibleBackend) coldRuns(counters *metrics.Metrics) *coldruns.Observer {
	o := coldruns.Options{Reason: a.warm.coldReason, SetCold: counters.SetWatchCold, Logger: a.options.Logger.WithName("warm")}
	for _, watch := range a.watches {
		if watch.Warm && watch.Job == nil {
			o.Watches = append(o.Watches, watch.GVK)
		}
	}
	return coldruns.New(o)
}

// engine returns the engine that runs the role or playbook of the watch.
func (a *ansibleBackend) engine(w Watch) (content.Engine, error) {
	runs := ansibleRunner{a.runner}
	digest := a.digests[w.GVK]
	e := &engine.Engine{
		Watch: w.Watch, ContentDigest: digest, Version: content.ShortVersion(a.options.Env.OperatorVersion(), digest), Runner: runs, Observers: a.observers,
		Defaults: engine.Defaults{Verbosity: a.options.AnsibleVerbosity, MaxVerbosity: a.options.MaxVerbosity, RefuseSops: a.sops},
	}
	if w.Job != nil {
		remote, err := a.all.inJobsOf(w.Watch, wire.Assignment{Settings: jobSettings(a.options, a.userMetrics), Python: a.checker.Proof()})
		if err != nil {
			return nil, err
		}
		e.Runner = jobRunner{remote, runs}
	}
	return e, nil
}

// ansibleRunner adds to a runner the removal of run directories.
type ansibleRunner struct{ *runner.Runner }

// Remove implements engine.Runner.
func (r ansibleRunner) Remove(uid string) error { return r.Root.Remove(uid) }

// close ends the server for warm runs.
func (a *ansibleBackend) close() error { return a.warm.close() }

// newChecker returns the checker that proves that Ansible does not evaluate text of a CR.
func newChecker(env pyenv.Env, info pyenv.Info) (*pyenv.Checker, error) {
	variables, err := canaryVariables()
	if err != nil {
		return nil, err
	}
	return pyenv.NewChecker(env, info, variables), nil
}

// canaryVariables returns the variables of the canary run, which proves that Ansible does
// not evaluate text of a CR. They are encoded as those of any run.
func canaryVariables() ([]byte, error) {
	variables, err := extravars.Build(map[string]any{"spec": map[string]any{pyenv.CanaryVariable: pyenv.CanaryText}}, extravars.Options{MarkUnsafe: true})
	if err != nil {
		return nil, fmt.Errorf("build the canary's variables: %w", err)
	}
	encoded, err := variables.Encode()
	if err != nil {
		return nil, fmt.Errorf("encode the canary's variables: %w", err)
	}
	return encoded, nil
}

func newRunner(o config.Options, paths config.Paths, env pyenv.Env, at runDirs) *runner.Runner {
	return &runner.Runner{
		Root:            at.root,
		Reaper:          at.reaper,
		Binary:          env.Runner,
		Python:          env.Python,
		Env:             env.Environ(),
		DropEnv:         o.DropEnv,
		RolesPath:       paths.Roles,
		CollectionsPath: paths.Collections,
		Args:            o.AnsibleArgs,
		Inventory:       o.Inventory(),
		SkipFacts:       o.SkipFacts(),
		IdleTimeout:     o.RunIdleTimeout,
		SettingName:     o.SettingName,
		OOMKills:        func() uint64 { return config.OOMKills(os.DirFS("/")) },
	}
}

// Package backend makes the parts by which one manager runs roles and playbooks: the Python environment
// and its proof, the runner, the server for warm runs, and the digests of the content. Package operator
// calls it.
package backend

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/engine"
	"github.com/ensign-operator/ensign/internal/ansible/extravars"
	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/observe/coldruns"
	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Backend runs roles and playbooks. Its exported fields are set before Prepare.
type Backend struct {
	Options config.Options
	Python  *Python
	// Ready is called before each run, and may be nil.
	Ready func(ctx context.Context) error

	watches []watches.Watch
	info    pyenv.Info
	checker *pyenv.Checker
	runner  *runner.Runner
	warm    *warmServer // nil: all runs are cold
	content []string    // files that runs may read
	// runDir is the directory of runs; "" if there is none.
	runDir string
	// digests holds engine.Engine.ContentDigest for each watch.
	digests map[schema.GroupVersionKind]string
	// sops is true if the collection community.sops is installed.
	sops      bool
	observers []engine.Observer
}

// Host has the parts of a manager that a Backend needs.
type Host struct {
	Registerer prometheus.Registerer
	// Observers are those of all runs. Those that are an engine.Observer get the job events.
	Observers []content.Observer
	// SetCold is called when the runs of a watch stay cold, and when they do not any more.
	SetCold func(watch schema.GroupVersionKind, cold bool)
}

// Prepare finds the Python environment, proves that it does not evaluate text of CRs, and makes
// the runner. It contacts nothing.
func (b *Backend) Prepare(ctx context.Context, list []watches.Watch, at process.Dirs) error {
	o := b.Options.WithAnsibleSettings()
	b.watches = list
	env, info, err := b.Python.Find(ctx, o)
	if err != nil {
		return err
	}
	b.info = info
	if at.Root != nil {
		b.runDir = at.Root.Path()
	}
	paths := o.SearchPaths()
	collectionsPath := slices.Concat(paths.DefaultCollections, paths.Collections, info.CollectionDirs)
	trees := watches.Trees(collectionsPath)
	warnOfOldCollection(o.Logger, trees)
	b.sops = info.HasCollection("community.sops", collectionsPath...)
	if b.digests, err = b.digestWatches(paths.Roles, collectionsPath, o.AnsibleConfig()); err != nil {
		return err
	}
	if b.checker, err = newChecker(env, info); err != nil {
		return err
	}
	if err := b.checker.Check(ctx); err != nil {
		return err
	}
	b.runner = newRunner(o, env, at)
	b.runner.Ready = b.ready
	if !slices.ContainsFunc(list, func(w watches.Watch) bool { return w.Job == nil }) {
		o.Cold = true // A Job has one run.
	}
	b.content = b.allContentPaths(paths.Roles, trees)
	b.nameChanges(o.AnsibleConfig())
	b.warm = newWarmServer(o, env, b.runner, b.content)
	o.Logger.Info("runs have a Python environment", "ansibleCore", info.AnsibleCore, "ansibleRunner", info.AnsibleRunner, "python", env.Python)
	return nil
}

func (b *Backend) ready(ctx context.Context) error {
	if err := b.checker.Check(ctx); err != nil {
		return fmt.Errorf("the Python environment has changed since this operator started: %w", err)
	}
	if b.Ready == nil {
		return nil
	}
	return b.Ready(ctx)
}

// Connect registers metrics, and returns the observers that watch over runs that stay cold.
func (b *Backend) Connect(h Host) ([]content.Observer, error) {
	if err := b.warm.registerMetrics(h.Registerer); err != nil {
		return nil, err
	}
	for _, o := range h.Observers {
		if sees, ok := o.(engine.Observer); ok {
			b.observers = append(b.observers, sees)
		}
	}
	if b.Options.Cold {
		return nil, nil
	}
	return []content.Observer{b.coldRuns(h.SetCold)}, nil
}

func (b *Backend) coldRuns(setCold func(watch schema.GroupVersionKind, cold bool)) *coldruns.Observer {
	o := coldruns.Options{Reason: b.warm.coldReason, SetCold: setCold, Logger: b.Options.Logger.WithName("warm")}
	for _, watch := range b.watches {
		if watch.Warm && watch.Job == nil {
			o.Watches = append(o.Watches, watch.GVK)
		}
	}
	return coldruns.New(o)
}

// PrepareRuns is called when the environment of runs is complete. env are further variables.
func (b *Backend) PrepareRuns(env ...string) {
	b.runner.Env = append(b.runner.Env, env...)
	b.runner.Prepare()
}

// Observe makes the engines report the job events of runs to this observer alone.
func (b *Backend) Observe(observer engine.Observer) { b.observers = []engine.Observer{observer} }

// Engine returns the engine that runs the role or playbook of the watch on this machine.
func (b *Backend) Engine(w watches.Watch) *engine.Engine {
	digest := b.digests[w.GVK]
	return &engine.Engine{
		Watch: w, ContentDigest: digest, Version: content.ShortVersion(b.Options.Env.OperatorVersion(), digest), Runner: local{b.runner}, Observers: b.observers,
		Defaults: engine.Defaults{Verbosity: b.Options.AnsibleVerbosity, MaxVerbosity: b.Options.MaxVerbosity, RefuseSops: b.sops},
	}
}

// Proof returns the proof of the Python environment, for agents.
func (b *Backend) Proof() pyenv.Proof { return b.checker.Proof() }

// KeepsServer reports whether a server for warm runs needs memory beside the runs.
func (b *Backend) KeepsServer() bool { return b.warm != nil }

// ContentPaths returns the files and directories that runs may read.
func (b *Backend) ContentPaths() []string { return b.content }

// Close ends the server for warm runs. All runs have ended.
func (b *Backend) Close() error { return b.warm.close() }

// NewAgent returns the runner that executes one run in the pod of a Job, by Execute. The manager has proved
// its Python environment, if it is the one of the proof.
func NewAgent(ctx context.Context, o config.Options, proof pyenv.Proof, at process.Dirs) (*runner.Runner, error) {
	env, err := findPython(ctx, o)
	if err != nil {
		return nil, err
	}
	checker, err := newChecker(env, pyenv.Info{})
	if err != nil {
		return nil, err
	}
	checker.Accept(proof)
	r := newRunner(o, env, at)
	r.Ready = checker.Check
	return r, nil
}

// local adds to a runner the removal of run directories.
type local struct{ *runner.Runner }

// Remove implements engine.Runner.
func (r local) Remove(uid string) error { return r.Root.Remove(uid) }

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

func newRunner(o config.Options, env pyenv.Env, at process.Dirs) *runner.Runner {
	paths := o.SearchPaths()
	return &runner.Runner{
		Root:            at.Root,
		Reaper:          at.Reaper,
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

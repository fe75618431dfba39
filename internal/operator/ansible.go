package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/internal/watches"
)

// ansibleSetup is the part of a manager that needs no API server.
type ansibleSetup struct {
	watches     []watches.Watch
	environment pyenv.Env
	info        pyenv.Info
	envChecker  *pyenv.Checker
	runner      *runner.Runner
	warm        *warmServer // nil: all runs are cold
	// digests holds controller.Reconciler.Digest for each watch.
	digests map[schema.GroupVersionKind]string
	// sops is true if the collection community.sops is installed.
	sops bool
}

// prepareAnsible reads the watches, checks the Python environment and makes the runner. It
// does not contact the API server. The caller closes the result.
func prepareAnsible(ctx context.Context, o config.Options) (ansibleSetup, error) {
	o = o.WithAnsibleSettings()
	env, err := pyenv.Find(pyenv.Search{Dir: o.Dir, Executable: o.Executable, Environ: o.Env.List()})
	if err != nil {
		return ansibleSetup{}, err
	}
	if env.VirtualEnvError != "" {
		o.Logger.Info("WARNING: VIRTUAL_ENV names a Python environment that can't be used; another one is: install ansible-runner and ansible-core in the former, or do not set the variable",
			"reason", env.VirtualEnvError, "used", env.Bin)
	}
	env, replaced := env.WithUTF8Locale(ctx)
	if len(replaced) > 0 {
		o.Logger.Info("WARNING: runs have the locale C.UTF-8, because these environment variables name one that is not in UTF-8 or not installed", "variables", replaced)
	}
	info, err := env.Inspect(ctx)
	if err != nil {
		return ansibleSetup{}, err
	}
	a := ansibleSetup{environment: env, info: info}
	paths := o.SearchPaths()
	collectionsPath := slices.Concat(paths.DefaultCollections, paths.Collections, info.CollectionDirs)
	if a.watches, err = loadWatches(o, watches.Search{
		Dir: o.Dir, RolesPath: paths.Roles, CollectionsPath: collectionsPath, LookupEnv: o.Env.Lookup, Here: o.InProject,
	}); err != nil {
		return ansibleSetup{}, err
	}
	warnOfOldCollection(o.Logger, collectionTrees(collectionsPath))
	a.sops = info.HasCollection("community.sops", collectionsPath...)
	if a.digests, err = a.digestWatches(paths.Roles, collectionsPath, o.AnsibleConfig()); err != nil {
		return ansibleSetup{}, err
	}
	variables, err := canaryVariables()
	if err != nil {
		return ansibleSetup{}, err
	}
	a.envChecker = pyenv.NewChecker(env, info, variables)
	if err := a.envChecker.Check(ctx); err != nil {
		return ansibleSetup{}, err
	}
	if a.runner, err = newRunner(o, paths, env); err != nil {
		return ansibleSetup{}, err
	}
	if slices.ContainsFunc(a.watches, func(watch watches.Watch) bool { return watch.Chart == nil }) {
		a.warm = newWarmServer(o, env, a.runner, a.allContentPaths(paths.Roles, collectionTrees(collectionsPath)))
	}
	return a, nil
}

// close ends the server for warm runs and unlocks the run directory. All runs must have
// ended.
func (a ansibleSetup) close() error { return errors.Join(a.warm.close(), a.runner.Root.Close()) }

// watchedKinds returns the kinds of the watches.
func (a ansibleSetup) watchedKinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, watch := range a.watches {
		kinds = append(kinds, watch.GVK)
	}
	return kinds
}

// loadWatches reads watches.yaml, applies the environment to it, and warns of settings that
// are probably mistakes or are dangerous.
func loadWatches(o config.Options, search watches.Search) ([]watches.Watch, error) {
	search.OnUnset = func(name string, line int) {
		o.Logger.Info("WARNING: the watches file names an environment variable that is not set, and its ${} stays as it is; ${NAME:-default} gives it a default", "variable", name, "line", line)
	}
	list, err := watches.Load(o.WatchesFile, search)
	if err != nil {
		return nil, fmt.Errorf("read the watches:\n%w", err)
	}
	if err := o.Env.Override(list); err != nil {
		return nil, err
	}
	if names := o.Env.UnmatchedVariables(list); len(names) > 0 {
		o.Logger.Info("WARNING: environment variables name a kind that is not watched; after the prefix stand kind and group, in upper case, with dots as underscores", "variables", names)
	}
	for i := range list {
		warnOfTemplates(o.Logger, list[i])
		if !list[i].MarkUnsafe {
			o.Logger.Info("WARNING: markUnsafe is false: whoever may write such a resource can run code in this operator (template injection, CWE-1336, as in CVE-2021-3583)",
				"gvk", list[i].GVK.String(), "line", list[i].Line)
		}
	}
	return list, nil
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

func newRunner(o config.Options, paths config.Paths, env pyenv.Env) (*runner.Runner, error) {
	root, reaper, err := process.TakeOver(o.RunDir, o.Logger)
	if err != nil {
		return nil, fmt.Errorf("%w (--run-dir chooses another)", err)
	}
	if err := root.Limit(o.ArtifactsMaxBytes); err != nil {
		return nil, errors.Join(fmt.Errorf("%w (--run-dir chooses another)", err), root.Close())
	}
	return &runner.Runner{
		Root:            root,
		Reaper:          reaper,
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
		OOMKills:        func() uint64 { return config.OOMKills(os.DirFS("/")) },
	}, nil
}

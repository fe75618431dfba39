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
	"github.com/ensign-operator/ensign/internal/watches"
)

// ansible is the part of a manager that needs no API server.
type ansible struct {
	watches     []watches.Watch
	environment pyenv.Env
	info        pyenv.Info
	proof       *pyenv.Checker
	runner      *runner.Runner
	warm        *warmPool // nil: all runs are cold
	// digests has for each watch what controller.Reconciler.Digest is.
	digests map[schema.GroupVersionKind]string
	// sops is true where community.sops is installed.
	sops bool
}

// prepareAnsible reads the watches and proves the Python environment. It
// contacts nothing.
func prepareAnsible(ctx context.Context, o config.Options) (ansible, error) {
	found, err := pyenv.Find(pyenv.Search{Dir: o.Dir, Executable: o.Executable, Environ: o.Env.List()})
	if err != nil {
		return ansible{}, err
	}
	if found.VirtualEnvError != "" {
		o.Logger.Info("WARNING: VIRTUAL_ENV names a Python environment that can't be used; another one is: install ansible-runner and ansible-core in the former, or do not set the variable",
			"reason", found.VirtualEnvError, "used", found.Bin)
	}
	found, replaced := found.WithUTF8Locale(ctx)
	if len(replaced) > 0 {
		o.Logger.Info("WARNING: runs have the locale C.UTF-8, because these environment variables name one that is not in UTF-8 or not installed", "variables", replaced)
	}
	info, err := found.Inspect(ctx)
	if err != nil {
		return ansible{}, err
	}
	a := ansible{environment: found, info: info}
	search := o.SearchPaths()
	searched := slices.Concat(search.DefaultCollections, search.Collections, info.CollectionDirs)
	if a.watches, err = loadWatches(o, watches.Search{
		Dir: o.Dir, RolesPath: search.Roles, CollectionsPath: searched, LookupEnv: o.Env.Lookup,
	}); err != nil {
		return ansible{}, err
	}
	warnOfCollections(o.Logger, collectionTrees(searched))
	a.sops = info.HasCollection("community.sops", searched...)
	if a.digests, err = a.digestWatches(search.Roles, searched); err != nil {
		return ansible{}, err
	}
	variables, err := canaryVariables()
	if err != nil {
		return ansible{}, err
	}
	a.proof = pyenv.NewChecker(found, info, variables)
	if err := a.proof.Check(ctx); err != nil {
		return ansible{}, err
	}
	if a.runner, err = newRunner(o, search, found); err != nil {
		return ansible{}, err
	}
	a.warm = newWarm(o, found, a.runner)
	return a, nil
}

// end gives up the servers of warm runs and the run directory. All runs have ended.
func (a ansible) end() error { return errors.Join(a.warm.end(), a.runner.Root.Close()) }

// names are those of the watches in slots and metrics.
func (a ansible) names() []string {
	var names []string
	for _, watch := range a.watches {
		names = append(names, watch.GVK.String())
	}
	return names
}

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
		if !list[i].MarkUnsafe {
			o.Logger.Info("WARNING: markUnsafe is false: whoever may write such a resource can run code in this operator (template injection, CWE-1336, as in CVE-2021-3583)",
				"gvk", list[i].GVK.String(), "line", list[i].Line)
		}
	}
	return list, nil
}

// canaryVariables are the canary's: text of a CR must come through the real
// binaries as it is. They go through the encoder that runs use.
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

func newRunner(o config.Options, search config.Paths, found pyenv.Env) (*runner.Runner, error) {
	root, reaper, err := runner.TakeOver(o.RunDir, o.Logger)
	if err != nil {
		return nil, fmt.Errorf("%w (--run-dir chooses another)", err)
	}
	if err := root.Limit(o.ArtifactsMaxBytes); err != nil {
		return nil, errors.Join(fmt.Errorf("%w (--run-dir chooses another)", err), root.Close())
	}
	return &runner.Runner{
		Root:            root,
		Reaper:          reaper,
		Binary:          found.Runner,
		Python:          found.Python,
		Env:             found.Environ(),
		DropEnv:         o.DropEnv,
		RolesPath:       search.Roles,
		CollectionsPath: search.Collections,
		Args:            o.AnsibleArgs,
		Inventory:       o.Inventory(),
		SkipFacts:       o.SkipFacts(),
		IdleTimeout:     o.RunIdleTimeout,
		OOMKills:        func() uint64 { return config.OOMKills(os.DirFS("/")) },
	}, nil
}

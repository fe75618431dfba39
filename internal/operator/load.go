package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"

	ansible "github.com/ensign-operator/ensign/internal/ansible/backend"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/watches"
)

// loadContent reads the watches file and finds the content of its watches. Only for roles and
// playbooks does it look for the Python environment, which may have collections. Where there is
// none, it returns the faults of the file that are certain without it.
func loadContent(ctx context.Context, o config.Options, p *ansible.Python) ([]watches.Watch, error) {
	kinds, faults := watches.Load(o.WatchesFile, watches.Search{Dir: o.Dir, LookupEnv: o.Env.Lookup, KindsOnly: true})
	search, err := contentSearch(ctx, o, p, slices.ContainsFunc(kinds, isAnsible))
	switch {
	case err != nil && faults != nil:
		return nil, faultsOf(faults)
	case err != nil:
		return nil, err
	}
	return loadWatches(o, search)
}

// contentSearch returns where content is searched. withPython adds the collections of the Python
// environment.
func contentSearch(ctx context.Context, o config.Options, p *ansible.Python, withPython bool) (watches.Search, error) {
	o = o.WithAnsibleSettings()
	paths := o.SearchPaths()
	collections := slices.Concat(paths.DefaultCollections, paths.Collections)
	if withPython {
		_, info, err := p.Find(ctx, o)
		if err != nil {
			return watches.Search{}, err
		}
		collections = append(collections, info.CollectionDirs...)
	}
	return watches.Search{Dir: o.Dir, RolesPath: paths.Roles, CollectionsPath: collections, LookupEnv: o.Env.Lookup, Here: o.InProject}, nil
}

// Watches reads the watches file for a command that runs no content. It needs no Python
// environment, and leaves the Content of the watches empty.
func Watches(o config.Options) ([]watches.Watch, error) {
	return loadWatches(o, watches.Search{Dir: o.Dir, LookupEnv: o.Env.Lookup, KindsOnly: true})
}

// chartWatches is Watches with the paths of charts.
func chartWatches(o config.Options) ([]watches.Watch, error) {
	return loadWatches(o, watches.Search{Dir: o.Dir, LookupEnv: o.Env.Lookup, KindsOnly: true, Charts: true, Here: o.InProject})
}

// loadWatches reads watches.yaml, applies the environment to it, and warns of settings that
// are probably mistakes or are dangerous.
func loadWatches(o config.Options, search watches.Search) ([]watches.Watch, error) {
	search.OnUnset = func(name string, line int) {
		o.Logger.Info("WARNING: the watches file names an environment variable that is not set, so the text keeps the ${}; set the variable, or give it a default: ${NAME:-default}", "variable", name, "line", line)
	}
	list, err := watches.Load(o.WatchesFile, search)
	if err != nil {
		return nil, faultsOf(err)
	}
	if err := o.Env.Override(list); err != nil {
		return nil, err
	}
	if names := o.Env.UnmatchedVariables(list); len(names) > 0 {
		o.Logger.Info("WARNING: these environment variables have no effect, because no watch has their kind; write KIND_GROUP after the prefix, in upper case, with dots as underscores", "variables", names)
	}
	warnOfDangers(o.Logger, list)
	return list, nil
}

// ErrNoWatches is the error of a file of watches that is not there.
var ErrNoWatches = watches.ErrNoFile

// ErrEmptyList is the error of a manager that brings no kind of its own and has a file that watches none.
var ErrEmptyList = errors.New(watches.EmptyList)

// faultsOf returns the error that has the faults of the watches file.
func faultsOf(faults error) error { return fmt.Errorf("read the watches:\n%w", faults) }

// warnOfDangers warns of settings by which a user who may write CRs can do more than write CRs.
func warnOfDangers(log logr.Logger, list []watches.Watch) {
	for i := range list {
		watch := &list[i]
		for _, d := range watch.Dangers() {
			log.Info("WARNING: "+d.Setting+": "+d.Effect, "gvk", watch.GVK.String(), "line", watch.Line)
		}
	}
}

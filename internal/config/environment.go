package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/cfgfile"
	"github.com/ensign-operator/ensign/internal/watches"
)

// Environment holds the environment variables of the manager by name.
type Environment map[string]string

// NewEnvironment parses entries "NAME=value", as os.Environ returns them.
func NewEnvironment(list []string) Environment {
	env := Environment{}
	for _, entry := range list {
		if name, value, ok := strings.Cut(entry, "="); ok {
			env[name] = value
		}
	}
	return env
}

// List returns the variables as "NAME=value", in no particular order.
func (e Environment) List() []string {
	list := make([]string, 0, len(e))
	for name, value := range e {
		list = append(list, name+"="+value)
	}
	return list
}

// Lookup returns the value of a variable and reports whether it is set.
func (e Environment) Lookup(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

// Ansible's own defaults: DEFAULT_ROLES_PATH and COLLECTIONS_PATHS of its configuration.
const (
	defaultCollections = "~/.ansible/collections:/usr/share/ansible/collections"
	defaultRoles       = "~/.ansible/roles:/usr/share/ansible/roles:/etc/ansible/roles"
)

// Paths are the absolute directories in which roles and collections are searched.
type Paths struct {
	// Roles and Collections are passed to runs too. If one is nil, Ansible decides by its
	// configuration.
	Roles, Collections []string
	// DefaultCollections is Ansible's own search path if Collections is nil.
	DefaultCollections []string
}

// SearchPaths returns the search paths from the flags, or else from the environment, or else
// from Ansible's configuration file. Without any, roles are searched in ./roles first, so that
// playbooks find the project's roles too.
func (o Options) SearchPaths() Paths { return o.searchPaths(cfgfile.Find(o.Env, os.ReadFile)) }

func (o Options) searchPaths(settings cfgfile.File) Paths {
	paths := Paths{
		Roles:       o.splitPath(cmp.Or(o.AnsibleRolesPath, o.Env["ANSIBLE_ROLES_PATH"])),
		Collections: o.splitPath(cmp.Or(o.AnsibleCollectionsPath, o.Env["ANSIBLE_COLLECTIONS_PATH"])),
	}
	// The file may be written for an image, where the project is elsewhere: its own roles count too.
	if own := o.absolute("roles"); paths.Roles == nil {
		if paths.Roles = o.inProject(settings.Paths("roles_path")); paths.Roles != nil && !slices.Contains(paths.Roles, own) {
			paths.Roles = append(paths.Roles, own)
		}
	}
	if paths.Collections == nil {
		paths.Collections = o.inProject(settings.Paths("collections_path"))
	}
	// A path that only Ansible understands stays Ansible's.
	if _, set := settings.Value("roles_path", "defaults"); paths.Roles == nil && !set {
		paths.Roles = o.splitPath("roles:" + defaultRoles)
	}
	if paths.Collections == nil {
		paths.DefaultCollections = o.splitPath(defaultCollections)
	}
	return paths
}

// splitPath splits a search path and makes its entries absolute.
func (o Options) splitPath(joined string) []string {
	var found []string
	for _, path := range filepath.SplitList(joined) {
		rest, inHome := strings.CutPrefix(path, "~")
		switch {
		case path == "":
			continue
		case inHome && (rest == "" || rest[0] == '/'):
			path = filepath.Join(o.Env["HOME"], rest)
		default:
			path = o.absolute(path)
		}
		found = append(found, o.InProject(path))
	}
	return found
}

// ImageDir is the directory in which an image has the operator, whose files name it.
const ImageDir = "/opt/ansible"

// InProject returns where a path of the image is in the project: below Dir, unless only the path
// itself is there. Other paths, and all paths without Options.Project, are returned as they are.
func (o Options) InProject(path string) string {
	below, inside := strings.CutPrefix(filepath.Clean(path)+"/", ImageDir+"/")
	if !o.Project || !inside || o.Dir == ImageDir {
		return path
	}
	here := filepath.Join(o.Dir, below)
	if !fileExists(here) && fileExists(path) {
		return path
	}
	return here
}

// inProject is InProject of each path.
func (o Options) inProject(paths []string) []string {
	for i := range paths {
		paths[i] = o.InProject(paths[i])
	}
	return paths
}

// absolute returns the path as an absolute one. A relative path starts in the working
// directory.
func (o Options) absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(o.Dir, path)
}

// Inventory returns the absolute path of the inventory, of which each run gets a copy; ""
// if there is none.
func (o Options) Inventory() string {
	path := o.Env["ANSIBLE_INVENTORY"]
	if path == "" {
		return ""
	}
	return o.absolute(path)
}

// SkipFacts reports whether runs of roles skip the gathering of facts.
func (o Options) SkipFacts() bool { return o.Env["ANSIBLE_GATHERING"] == "explicit" }

// Namespaces returns the namespaces of WATCH_NAMESPACE; nil means all.
func (e Environment) Namespaces() []string {
	var found []string
	for namespace := range strings.SplitSeq(e["WATCH_NAMESPACE"], ",") {
		if namespace = strings.TrimSpace(namespace); namespace != "" {
			found = append(found, namespace)
		}
	}
	return found
}

// OperatorVersion returns the version of the operator whose content runs, as its author
// calls it; "" if it is not set. OLM sets OPERATOR_CONDITION_NAME, to a name such as greeting.v1.4.0.
func (e Environment) OperatorVersion() string {
	return cmp.Or(e["OPERATOR_VERSION"], e["OPERATOR_CONDITION_NAME"])
}

// Prefixes of the variables for one watch. The watch's kind and group follow: see
// variableSuffix.
const (
	concurrencyPrefix    = "MAX_CONCURRENT_RECONCILES_"
	oldConcurrencyPrefix = "WORKER_"
	verbosityPrefix      = "ANSIBLE_VERBOSITY_"
)

// Override sets fields of the watches from the variables for each of them.
func (e Environment) Override(list []watches.Watch) error {
	var errs []error
	for i := range list {
		w, suffix := &list[i], variableSuffix(list[i].GVK)
		setConcurrency := func(n int) { w.MaxConcurrentReconciles = n }
		errs = append(errs,
			e.overrideInt(oldConcurrencyPrefix+suffix, bounds{1, 1 << 16}, setConcurrency),
			e.overrideInt(concurrencyPrefix+suffix, bounds{1, 1 << 16}, setConcurrency),
			e.overrideInt(verbosityPrefix+suffix, bounds{0, 7}, func(n int) { w.Verbosity = &n }),
		)
	}
	return errors.Join(errs...)
}

// UnmatchedVariables returns the variables that have a prefix for one watch but match
// none in the list, such as one with a misspelled kind.
func (e Environment) UnmatchedVariables(list []watches.Watch) []string {
	known := map[string]bool{}
	for i := range list {
		known[variableSuffix(list[i].GVK)] = true
	}
	var found []string
	for name := range e {
		for _, prefix := range []string{concurrencyPrefix, verbosityPrefix} {
			if suffix, ok := strings.CutPrefix(name, prefix); ok && !known[suffix] {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	return found
}

// variableSuffix returns the kind and group as the names of variables have them:
// GREETING_DEMO_EXAMPLE_COM.
func variableSuffix(gvk schema.GroupVersionKind) string {
	return strings.ToUpper(gvk.Kind + "_" + strings.ReplaceAll(gvk.Group, ".", "_"))
}

type bounds struct{ low, high int }

// overrideInt calls set with the value of the variable if it is set.
func (e Environment) overrideInt(name string, allowed bounds, set func(int)) error {
	text, ok := e[name]
	if !ok {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < allowed.low || n > allowed.high {
		return fmt.Errorf("environment variable %s: invalid value %q: write a whole number from %d to %d", name, text, allowed.low, allowed.high)
	}
	set(n)
	return nil
}

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

	"github.com/ensign-operator/ensign/internal/watches"
)

// Environment is the manager's, by name.
type Environment map[string]string

// NewEnvironment reads entries such as "NAME=value".
func NewEnvironment(list []string) Environment {
	env := Environment{}
	for _, entry := range list {
		if name, value, ok := strings.Cut(entry, "="); ok {
			env[name] = value
		}
	}
	return env
}

// List returns the entries as "NAME=value", in no order.
func (e Environment) List() []string {
	list := make([]string, 0, len(e))
	for name, value := range e {
		list = append(list, name+"="+value)
	}
	return list
}

// Lookup returns the value of a variable, and whether it is set.
func (e Environment) Lookup(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

// Where Ansible looks by itself.
const (
	defaultCollections = "~/.ansible/collections:/usr/share/ansible/collections"
	defaultRoles       = "~/.ansible/roles:/usr/share/ansible/roles:/etc/ansible/roles"
)

// Paths are where roles and collections are searched, as absolute directories.
type Paths struct {
	// Roles and Collections are for runs, too; nil leaves them to Ansible and its
	// configuration.
	Roles, Collections []string
	// Usual is where Ansible looks for collections by itself, where Collections is nil.
	Usual []string
}

// SearchPaths takes the flags over the environment. Without either, a playbook
// finds the project's own roles/ as a role of a watch does, unless an ansible.cfg
// may say otherwise.
func (o Options) SearchPaths() Paths { return o.searchPaths(fileExists) }

func (o Options) searchPaths(exists func(path string) bool) Paths {
	roles := cmp.Or(o.AnsibleRolesPath, o.Env["ANSIBLE_ROLES_PATH"])
	if roles == "" && !o.Env.configured(exists) {
		roles = "roles:" + defaultRoles
	}
	paths := Paths{
		Roles:       o.splitPath(roles),
		Collections: o.splitPath(cmp.Or(o.AnsibleCollectionsPath, o.Env["ANSIBLE_COLLECTIONS_PATH"])),
	}
	if paths.Collections == nil {
		paths.Usual = o.splitPath(defaultCollections)
	}
	return paths
}

// configured reports whether Ansible finds a configuration file for a run, whose
// working directory is its own.
func (e Environment) configured(exists func(path string) bool) bool {
	return e["ANSIBLE_CONFIG"] != "" || exists(filepath.Join(e["HOME"], ".ansible.cfg")) || exists("/etc/ansible/ansible.cfg")
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
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
		found = append(found, path)
	}
	return found
}

// absolute returns a path from the working directory on.
func (o Options) absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(o.Dir, path)
}

// Inventory returns the absolute path of the inventory of which runs get a copy, ""
// for none.
func (o Options) Inventory() string {
	path := o.Env["ANSIBLE_INVENTORY"]
	if path == "" {
		return ""
	}
	return o.absolute(path)
}

// SkipFacts reports whether the plays of roles gather no facts.
func (o Options) SkipFacts() bool { return o.Env["ANSIBLE_GATHERING"] == "explicit" }

// Namespaces returns those of WATCH_NAMESPACE; none means all.
func (e Environment) Namespaces() []string {
	var found []string
	for namespace := range strings.SplitSeq(e["WATCH_NAMESPACE"], ",") {
		if namespace = strings.TrimSpace(namespace); namespace != "" {
			found = append(found, namespace)
		}
	}
	return found
}

// The variables that say something of one watch begin so; its kind and group follow.
const (
	workersPrefix    = "MAX_CONCURRENT_RECONCILES_"
	oldWorkersPrefix = "WORKER_"
	verbosityPrefix  = "ANSIBLE_VERBOSITY_"
)

// Override puts what the environment says of the watches over what they say.
func (e Environment) Override(list []watches.Watch) error {
	var errs []error
	for i := range list {
		w, suffix := &list[i], environmentSuffix(list[i].GVK)
		workers := func(n int) { w.MaxConcurrentReconciles = n }
		errs = append(errs,
			e.number(oldWorkersPrefix+suffix, bounds{1, 1 << 16}, workers),
			e.number(workersPrefix+suffix, bounds{1, 1 << 16}, workers),
			e.number(verbosityPrefix+suffix, bounds{0, 7}, func(n int) { w.Verbosity = &n }),
		)
	}
	return errors.Join(errs...)
}

// Strangers returns the variables that seem to speak of a watch, but of none in the list.
func (e Environment) Strangers(list []watches.Watch) []string {
	known := map[string]bool{}
	for i := range list {
		known[environmentSuffix(list[i].GVK)] = true
	}
	var found []string
	for name := range e {
		for _, prefix := range []string{workersPrefix, verbosityPrefix} {
			if suffix, ok := strings.CutPrefix(name, prefix); ok && !known[suffix] {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	return found
}

func environmentSuffix(gvk schema.GroupVersionKind) string {
	return strings.ToUpper(gvk.Kind + "_" + strings.ReplaceAll(gvk.Group, ".", "_"))
}

type bounds struct{ low, high int }

func (e Environment) number(name string, allowed bounds, set func(int)) error {
	text, ok := e[name]
	if !ok {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < allowed.low || n > allowed.high {
		return fmt.Errorf("environment variable %s: %q is no whole number from %d to %d", name, text, allowed.low, allowed.high)
	}
	set(n)
	return nil
}

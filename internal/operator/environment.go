package operator

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

// environment is the manager's, by name.
type environment map[string]string

func newEnvironment(list []string) environment {
	env := environment{}
	for _, entry := range list {
		if name, value, ok := strings.Cut(entry, "="); ok {
			env[name] = value
		}
	}
	return env
}

func (e environment) lookup(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

// ansiblePaths are where runs, too, search for roles and collections; nil leaves
// that to Ansible and its configuration.
type ansiblePaths struct{ roles, collections []string }

// searchPaths takes the flags over the environment. Without either, a playbook
// finds the project's own roles/ as a role of a watch does, unless an ansible.cfg
// may say otherwise.
func searchPaths(o Options, env environment, exists func(path string) bool) ansiblePaths {
	roles := cmp.Or(o.AnsibleRolesPath, env["ANSIBLE_ROLES_PATH"])
	if roles == "" && !configured(env, exists) {
		roles = "roles:" + defaultRoles
	}
	return ansiblePaths{
		roles:       splitPath(o.Dir, env["HOME"], roles),
		collections: splitPath(o.Dir, env["HOME"], cmp.Or(o.AnsibleCollectionsPath, env["ANSIBLE_COLLECTIONS_PATH"])),
	}
}

// configured reports whether Ansible finds a configuration file for a run, whose
// working directory is its own.
func configured(env environment, exists func(path string) bool) bool {
	return env["ANSIBLE_CONFIG"] != "" || exists(filepath.Join(env["HOME"], ".ansible.cfg")) || exists("/etc/ansible/ansible.cfg")
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// splitPath splits a search path and makes its entries absolute.
func splitPath(dir, home, joined string) []string {
	var found []string
	for _, path := range filepath.SplitList(joined) {
		rest, inHome := strings.CutPrefix(path, "~")
		switch {
		case path == "":
			continue
		case inHome && (rest == "" || rest[0] == '/'):
			path = filepath.Join(home, rest)
		case !filepath.IsAbs(path):
			path = filepath.Join(dir, path)
		}
		found = append(found, path)
	}
	return found
}

// namespaces are those of WATCH_NAMESPACE; none means all.
func (e environment) namespaces() []string {
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

// override puts what the environment says of the watches over what they say.
func (e environment) override(list []watches.Watch) error {
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

// strangers are the variables that seem to speak of a watch, but of none in the list.
func (e environment) strangers(list []watches.Watch) []string {
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

func (e environment) number(name string, allowed bounds, set func(int)) error {
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

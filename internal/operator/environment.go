package operator

import (
	"fmt"
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

// list gives the environment as "NAME=value", sorted.
func (e environment) list() []string {
	entries := make([]string, 0, len(e))
	for name, value := range e {
		entries = append(entries, name+"="+value)
	}
	slices.Sort(entries)
	return entries
}

// paths splits a search path and makes its entries absolute; nil where it is empty.
func paths(dir string, candidates ...string) []string {
	for _, joined := range candidates {
		if joined == "" {
			continue
		}
		var found []string
		for _, path := range filepath.SplitList(joined) {
			if path != "" && !filepath.IsAbs(path) && !strings.HasPrefix(path, "~") {
				path = filepath.Join(dir, path)
			}
			found = append(found, path)
		}
		return found
	}
	return nil
}

// override puts what the environment says of a watch over what the watch says.
func (e environment) override(w watches.Watch) (watches.Watch, error) {
	suffix := environmentSuffix(w.GVK)
	for _, prefix := range []string{"WORKER_", "MAX_CONCURRENT_RECONCILES_"} {
		if err := e.number(prefix+suffix, 1, 1<<16, func(n int) { w.MaxConcurrentReconciles = n }); err != nil {
			return w, err
		}
	}
	err := e.number("ANSIBLE_VERBOSITY_"+suffix, 0, 7, func(n int) { w.Verbosity = &n })
	return w, err
}

func environmentSuffix(gvk schema.GroupVersionKind) string {
	return strings.ToUpper(gvk.Kind + "_" + strings.ReplaceAll(gvk.Group, ".", "_"))
}

func (e environment) number(name string, low, high int, set func(int)) error {
	text, ok := e[name]
	if !ok {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return fmt.Errorf("environment variable %s: %q is no whole number from %d to %d", name, text, low, high)
	}
	set(n)
	return nil
}

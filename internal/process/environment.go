package process

import (
	"cmp"
	"slices"
	"strings"
)

// InheritedEnv returns the variables that a run gets from the manager's environment, whose
// entries are "NAME=value": all but those that dropped names, as "NAME" or as "NAME*" for all
// names with that prefix, and those in also.
func InheritedEnv(manager, dropped, also []string) map[string]string {
	env := map[string]string{}
	for _, entry := range manager {
		name, value, found := strings.Cut(entry, "=")
		if found && name != "" && !matchesAny(name, dropped) && !slices.Contains(also, name) {
			env[name] = value
		}
	}
	return env
}

// BypassHTTPProxy makes requests to the API proxy on 127.0.0.1 bypass an HTTP proxy that the
// manager's environment names, or content for one of its tasks.
func BypassHTTPProxy(env map[string]string) {
	exceptions := cmp.Or(env["NO_PROXY"], env["no_proxy"])
	if strings.TrimSpace(exceptions) != "*" { // With anything beside it, the star means nothing.
		exceptions = strings.TrimPrefix(exceptions+",127.0.0.1,localhost", ",")
	}
	env["NO_PROXY"], env["no_proxy"] = exceptions, exceptions
}

func matchesAny(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		return name == pattern || isPrefix && strings.HasPrefix(name, prefix)
	})
}

// Entries returns the environment as sorted entries "NAME=value".
func Entries(env map[string]string) []string {
	entries := make([]string, 0, len(env))
	for name, value := range env {
		entries = append(entries, name+"="+value)
	}
	slices.Sort(entries)
	return entries
}

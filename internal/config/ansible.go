package config

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ensign-operator/ensign/internal/ansible/cfgfile"
)

// WithAnsibleSettings returns the options with an environment in which Ansible works as in a shell
// in the project's directory, although a run has a working directory of its own:
//   - The ansible.cfg beside the watches file is Ansible's configuration file, unless
//     ANSIBLE_CONFIG names another.
//   - Relative paths in variables of Ansible begin in the manager's working directory.
//   - The directories with callback plugins of a configuration file stand in the environment,
//     because ansible-runner sets the variable, which goes before the file.
func (o Options) WithAnsibleSettings() Options {
	env := maps.Clone(o.Env)
	for name, value := range env {
		if namesPaths(name) {
			env[name] = o.absolutePaths(value)
		}
	}
	if beside := filepath.Join(filepath.Dir(o.absolute(o.WatchesFile)), cfgfile.Name); env["ANSIBLE_CONFIG"] == "" && isFile(beside) {
		env["ANSIBLE_CONFIG"] = beside
	}
	const callbacks = "ANSIBLE_CALLBACK_PLUGINS"
	own := cfgfile.Find(env, os.ReadFile).Paths("callback_plugins")
	if joined := cmp.Or(env[callbacks], strings.Join(own, string(filepath.ListSeparator))); joined != "" {
		env[callbacks] = joined
	}
	o.Env = env
	return o
}

// AnsibleConfig returns the path of the configuration file that runs have; none if there is none.
// WithAnsibleSettings has been called.
func (o Options) AnsibleConfig() []string {
	if path := cfgfile.Find(o.Env, os.ReadFile).Path; path != "" {
		return []string{path}
	}
	return nil
}

// namesPaths reports whether a variable is a path of Ansible's, or several that are joined by ":".
// Those with roles, collections and the inventory are made absolute where they are read.
func namesPaths(name string) bool {
	return slices.Contains([]string{"ANSIBLE_CONFIG", "ANSIBLE_VAULT_PASSWORD_FILE", "ANSIBLE_LIBRARY", "ANSIBLE_MODULE_UTILS"}, name) ||
		strings.HasPrefix(name, "ANSIBLE_") && strings.HasSuffix(name, "_PLUGINS") && name != "ANSIBLE_RUN_VARS_PLUGINS" && name != "ANSIBLE_LOAD_CALLBACK_PLUGINS"
}

// absolutePaths makes the relative entries of a search path absolute. Ansible itself replaces
// variables and "~".
func (o Options) absolutePaths(joined string) string {
	paths := filepath.SplitList(joined)
	for i, path := range paths {
		if path != "" && !strings.ContainsAny(path[:1], "~$/{") {
			paths[i] = o.InProject(o.absolute(path))
		}
	}
	return strings.Join(paths, string(filepath.ListSeparator))
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

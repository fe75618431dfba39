package config

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ensign-operator/ensign/internal/ansible/cfgfile"
)

// WithAnsibleSettings returns the options with an environment in which Ansible works as in a shell
// in the project's directory, although a run has another working directory:
//   - The ansible.cfg beside the watches file is Ansible's configuration file, unless
//     ANSIBLE_CONFIG names another.
//   - Paths below ImageDir in that file mean the project's directory.
//   - Relative paths in variables of Ansible begin in the manager's working directory.
//   - Paths of the configuration file for which Ansible takes its own working directory begin there, too: they
//     stand in the environment, which goes before the file. Others begin in the file's directory.
//   - The directories with callback plugins of a configuration file stand there too, because
//     ansible-runner sets the variable.
func (o Options) WithAnsibleSettings() Options {
	env := maps.Clone(o.Env)
	for name, value := range env {
		env[name] = o.resolved(name, value)
	}
	if beside := filepath.Join(filepath.Dir(o.absolute(o.WatchesFile)), cfgfile.Name); env["ANSIBLE_CONFIG"] == "" && isFile(beside) {
		env["ANSIBLE_CONFIG"] = beside
	}
	file := cfgfile.Find(env, os.ReadFile)
	for _, setting := range file.Settings() {
		name := variableOf(setting)
		value := o.resolved(name, setting.Value)
		if namesPaths(name) || setting.Key == "roles_path" || setting.Key == "collections_path" {
			paths := file.Split(strings.ReplaceAll(setting.Value, workingDir, o.absolute(".")))
			here := o.inProject(slices.Clone(paths))
			if !strings.Contains(setting.Value, workingDir) && (slices.Equal(here, paths) || !namesPaths(name)) {
				continue // Ansible takes the file's directory.
			}
			value = strings.Join(here, string(filepath.ListSeparator))
		}
		if value != setting.Value && value != "" && env[name] == "" {
			env[name] = value
		}
	}
	const callbacks = "ANSIBLE_CALLBACK_PLUGINS"
	if joined := cmp.Or(env[callbacks], strings.Join(file.Paths("callback_plugins"), string(filepath.ListSeparator))); joined != "" {
		env[callbacks] = joined
	}
	o.Env = env
	return o
}

// workingDir means the working directory in paths of Ansible's settings.
const workingDir = "{{CWD}}"

// AnsibleConfig returns the path of the configuration file that runs have; none if there is none.
// WithAnsibleSettings has been called.
func (o Options) AnsibleConfig() []string {
	if path := cfgfile.Find(o.Env, os.ReadFile).Path; path != "" {
		return []string{path}
	}
	return nil
}

// variableOf returns the variable that has the same meaning as a setting of a configuration file.
func variableOf(s cfgfile.Setting) string {
	name := "ANSIBLE_" + strings.ToUpper(s.Key)
	switch {
	case s.Key == "interpreter_python":
		return pythonInterpreter
	case s.Section == "netconf_connection" && s.Key == "ssh_config":
		return "ANSIBLE_NETCONF_SSH_CONFIG"
	case s.Section == "defaults" && (namesPaths(name) || name == vaultIdentities || s.Key == "roles_path" || s.Key == "collections_path"), s.Section == "ssh_connection" && namesArguments(name):
		return name
	}
	return ""
}

const (
	vaultIdentities   = "ANSIBLE_VAULT_IDENTITY_LIST"
	pythonInterpreter = "ANSIBLE_PYTHON_INTERPRETER"
)

// sshFile matches a relative path of a file among arguments for OpenSSH.
var sshFile = regexp.MustCompile(`((?:^|\s)-[Fi]\s*)([^\s~/$%{'"-]\S*)`)

// resolved returns the value of a variable with absolute paths, if it is one of Ansible's with paths.
func (o Options) resolved(name, value string) string {
	if namesPaths(name) {
		value = strings.ReplaceAll(value, workingDir, o.absolute("."))
	}
	switch {
	case name == vaultIdentities:
		return o.absoluteIdentities(value)
	case name == pythonInterpreter && !strings.Contains(value, "/"): // A program of PATH, or a way to find one.
	case namesPaths(name), name == pythonInterpreter:
		return o.absolutePaths(value)
	case namesArguments(name):
		return sshFile.ReplaceAllStringFunc(value, func(found string) string {
			parts := sshFile.FindStringSubmatch(found)
			return parts[1] + o.absolutePaths(parts[2])
		})
	}
	return value
}

// absoluteIdentities makes the files of a list of vault identities absolute: ID@FILE, or FILE.
func (o Options) absoluteIdentities(list string) string {
	entries := strings.Split(list, ",")
	for i, entry := range entries {
		id, file, labelled := strings.Cut(strings.TrimSpace(entry), "@")
		if !labelled {
			id, file = "", id
		}
		if file != "prompt" && file != "prompt_ask_vault_pass" {
			file = o.absolutePaths(file)
		}
		if entries[i] = file; labelled {
			entries[i] = id + "@" + file
		}
	}
	return strings.Join(entries, ",")
}

// namesPaths reports whether a variable is a path of Ansible's or of a plugin's, or several that are
// joined by ":". Those with roles, collections and the inventory are made absolute where they are read.
func namesPaths(name string) bool {
	name, ansible := strings.CutPrefix(name, "ANSIBLE_")
	ends := func(suffix string) bool { return strings.HasSuffix("_"+name, suffix) }
	return ansible && (name == "LIBRARY" || name == "MODULE_UTILS" || slices.ContainsFunc([]string{
		"_PLUGINS", "_PATH", "_FILE", "_DIR", "_FOLDER", "_CONFIG", "_KEYFILE", "_KEYRING", "_SKELETON", "_HOME",
	}, ends)) && !slices.Contains([]string{
		"ROLES_PATH", "COLLECTIONS_PATH", "RUN_VARS_PLUGINS", "LOAD_CALLBACK_PLUGINS",
		"SSH_CONTROL_PATH", // A pattern that begins in a directory of its own.
	}, name)
}

// namesArguments reports whether a variable has arguments for OpenSSH.
func namesArguments(name string) bool {
	return slices.Contains([]string{"ANSIBLE_SSH_ARGS", "ANSIBLE_SSH_COMMON_ARGS", "ANSIBLE_SSH_EXTRA_ARGS", "ANSIBLE_SCP_EXTRA_ARGS", "ANSIBLE_SFTP_EXTRA_ARGS"}, name)
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

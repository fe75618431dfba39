package runner

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// usePipelining reports whether modules on localhost get their code by the standard input,
// which saves Ansible some shells and a temporary directory per module. Pipelining is used
// for runs that may be warm, unless the operator's author has set it, by the variable or in
// the ansible.cfg of a run with this environment. For a cold run it would not pay: a new
// interpreter needs more time to read a long line from its standard input than that saves.
func usePipelining(env map[string]string) bool {
	if _, chosen := env["ANSIBLE_PIPELINING"]; chosen {
		return false
	}
	for _, path := range configPaths(env) {
		if content, err := os.ReadFile(path); err == nil {
			return !setsPipelining(string(content))
		}
	}
	return true
}

// configPaths returns the paths in which Ansible looks for its configuration. Ansible reads
// the first one that it can. There is none in the working directory of runs.
func configPaths(env map[string]string) []string {
	defaults := []string{filepath.Join(env["HOME"], ".ansible.cfg"), "/etc/ansible/ansible.cfg"}
	path := os.Expand(env["ANSIBLE_CONFIG"], func(name string) string { return env[name] })
	if rest, inHome := strings.CutPrefix(path, "~/"); inHome {
		path = filepath.Join(env["HOME"], rest)
	}
	if path == "" {
		return defaults
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "ansible.cfg")
	}
	return append([]string{path}, defaults...)
}

// setsPipelining reports whether an ansible.cfg sets pipelining. The setting of SSH
// connections does not count.
func setsPipelining(content string) bool {
	section := ""
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		if name, isSection := strings.CutPrefix(line, "["); isSection {
			section, _, _ = strings.Cut(name, "]")
		}
		end := max(strings.IndexAny(line, "=:"), 0)
		if strings.EqualFold(strings.TrimSpace(line[:end]), "pipelining") && slices.Contains([]string{"defaults", "connection"}, section) {
			return true
		}
	}
	return false
}

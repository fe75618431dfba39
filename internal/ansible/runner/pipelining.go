package runner

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pipelines reports whether modules on localhost get their code by the standard input,
// which saves Ansible some shells and a temporary directory for each. It is so where
// runs may be warm, unless the operator's owner has chosen, one way or the other: by the
// variable, or in the ansible.cfg that a run with this environment reads. A new
// interpreter needs more time for a long line on its standard input than that saves.
func pipelines(env map[string]string) bool {
	if _, chosen := env["ANSIBLE_PIPELINING"]; chosen {
		return false
	}
	for _, path := range configs(env) {
		if content, err := os.ReadFile(path); err == nil {
			return !choosesPipelining(string(content))
		}
	}
	return true
}

// configs are the places where Ansible looks for its configuration; it reads the first
// that it can. The working directory of runs is another one, and has none.
func configs(env map[string]string) []string {
	places := []string{filepath.Join(env["HOME"], ".ansible.cfg"), "/etc/ansible/ansible.cfg"}
	path := os.Expand(env["ANSIBLE_CONFIG"], func(name string) string { return env[name] })
	if rest, own := strings.CutPrefix(path, "~/"); own {
		path = filepath.Join(env["HOME"], rest)
	}
	if path == "" {
		return places
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "ansible.cfg")
	}
	return append([]string{path}, places...)
}

// choosesPipelining looks for the setting in an ansible.cfg. That of SSH connections
// does not count.
func choosesPipelining(content string) bool {
	section := ""
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		if name, begins := strings.CutPrefix(line, "["); begins {
			section, _, _ = strings.Cut(name, "]")
		}
		end := max(strings.IndexAny(line, "=:"), 0)
		if strings.EqualFold(strings.TrimSpace(line[:end]), "pipelining") && slices.Contains([]string{"defaults", "connection"}, section) {
			return true
		}
	}
	return false
}

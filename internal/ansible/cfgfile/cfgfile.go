// Package cfgfile reads the parts of Ansible's configuration that the manager must know: which file
// Ansible reads, and single settings of it. It does not interpret settings, and does not judge the
// file: Ansible itself does.
package cfgfile

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Name is that of the file in a directory.
const Name = "ansible.cfg"

// File is a configuration file. The zero File has no settings.
type File struct {
	// Path is "" if there is none.
	Path string

	home   string
	values map[setting]string
}

type setting struct{ section, key string }

// Setting is one of a file.
type Setting struct{ Section, Key, Value string }

// Settings returns the settings of the file, sorted.
func (f File) Settings() []Setting {
	var all []Setting
	for at, value := range f.values {
		all = append(all, Setting{at.section, at.key, value})
	}
	slices.SortFunc(all, func(a, b Setting) int {
		return cmp.Or(strings.Compare(a.Section, b.Section), strings.Compare(a.Key, b.Key))
	})
	return all
}

// Find reads the file that Ansible reads with this environment in a directory without one:
// that of ANSIBLE_CONFIG, ~/.ansible.cfg or /etc/ansible/ansible.cfg. read is os.ReadFile or
// plays it.
func Find(env map[string]string, read func(path string) ([]byte, error)) File {
	paths := []string{filepath.Join(env["HOME"], "."+Name), "/etc/ansible/" + Name}
	if path := expand(env["ANSIBLE_CONFIG"], env); path != "" {
		paths = append([]string{path, filepath.Join(path, Name)}, paths...)
	}
	for _, path := range paths {
		if text, err := read(path); err == nil {
			return File{Path: path, home: env["HOME"], values: parse(string(text))}
		}
	}
	return File{}
}

// expand replaces variables and the home directory in a path, as Ansible does.
func expand(path string, env map[string]string) string {
	path = os.Expand(path, func(name string) string { return env[name] })
	if rest, inHome := strings.CutPrefix(path, "~/"); inHome {
		return filepath.Join(env["HOME"], rest)
	}
	return path
}

// Value returns a setting of the first of the sections that has it, and reports whether one does.
func (f File) Value(key string, sections ...string) (string, bool) {
	for _, section := range sections {
		if value, found := f.values[setting{section, key}]; found {
			return value, true
		}
	}
	return "", false
}

// Paths returns the absolute directories of a search path in the section "defaults"; nil if it is
// not set, or has a macro or variable, which Ansible alone replaces. Relative ones begin in the
// file's directory.
func (f File) Paths(key string) []string {
	value, _ := f.Value(key, "defaults")
	return f.Split(value)
}

// Split is Paths of a value.
func (f File) Split(value string) []string {
	if strings.ContainsAny(value, "{$") {
		return nil
	}
	var paths []string
	for _, path := range filepath.SplitList(value) {
		switch rest, inHome := strings.CutPrefix(path, "~/"); {
		case path == "":
			continue
		case inHome:
			path = filepath.Join(f.home, rest)
		case !filepath.IsAbs(path):
			path = filepath.Join(filepath.Dir(f.Path), path)
		}
		paths = append(paths, filepath.Clean(path))
	}
	return paths
}

// parse reads a file as Python's ConfigParser does: keys in any case, "=" or ":", comments at
// the beginning of a line, and after " ;". A line that is indented continues the value before it.
func parse(text string) map[setting]string {
	values, at := map[setting]string{}, setting{}
	for raw := range strings.Lines(text) {
		line, _, _ := strings.Cut(" "+strings.TrimSpace(raw), " ;")
		line = strings.TrimSpace(line)
		if line == "" || slices.Contains([]byte{'#', ';'}, line[0]) {
			continue
		}
		if indented := raw[0] == ' ' || raw[0] == '\t'; indented && at.key != "" {
			values[at] += "\n" + line
			continue
		}
		if name, isSection := strings.CutPrefix(line, "["); isSection {
			at = setting{}
			at.section, _, _ = strings.Cut(name, "]")
			continue
		}
		if end := strings.IndexAny(line, "=:"); end >= 0 {
			at.key = strings.ToLower(strings.TrimSpace(line[:end]))
			values[at] = strings.TrimSpace(line[end+1:])
		}
	}
	for at, value := range values {
		values[at] = unquote(strings.TrimSpace(value))
	}
	return values
}

// unquote removes a pair of quotes, as Ansible does from values of files.
func unquote(value string) string {
	if len(value) > 1 && strings.ContainsRune(`"'`, rune(value[0])) && value[len(value)-1] == value[0] {
		return value[1 : len(value)-1]
	}
	return value
}

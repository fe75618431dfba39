package check

import (
	"bufio"
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/ensign-operator/ensign/internal/config"
)

// settings returns the search paths that the ansible.cfg beside watches.yaml sets. It is the
// first that Ansible reads in an image, unless ANSIBLE_CONFIG names another one.
func (p *Project) settings() config.Paths {
	path := filepath.Join(p.options.Dir, "ansible.cfg")
	if named := p.options.Env["ANSIBLE_CONFIG"]; named != "" {
		path = p.options.InProject(named)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return config.Paths{}
	}
	defaults := section(text, "defaults")
	o := p.options
	o.AnsibleRolesPath = below(filepath.Dir(path), defaults["roles_path"])
	o.AnsibleCollectionsPath = below(filepath.Dir(path), cmp.Or(defaults["collections_path"], defaults["collections_paths"]))
	o.Env = config.Environment{"HOME": p.options.Env["HOME"], "ANSIBLE_CONFIG": path}
	return o.SearchPaths()
}

// below returns a search path whose relative entries begin in dir.
func below(dir, joined string) string {
	entries := filepath.SplitList(joined)
	for n, entry := range entries {
		if entry != "" && !filepath.IsAbs(entry) && entry[0] != '~' {
			entries[n] = filepath.Join(dir, entry)
		}
	}
	return strings.Join(entries, string(filepath.ListSeparator))
}

// section returns the settings of a section of an INI file.
func section(text []byte, name string) map[string]string {
	found, inside := map[string]string{}, false
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			inside = line == "["+name+"]"
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if inside && ok && !strings.ContainsAny(line[:1], "#;") {
			value, _, _ = strings.Cut(value, " ;") // A comment.
			found[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return found
}

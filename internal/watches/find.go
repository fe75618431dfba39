package watches

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// content finds the role or playbook of what (the watch, the finalizer), whose
// fields begin on line. After a fault it is empty.
func (r *reader) content(search Search, what string, line int, c contentDraft) Content {
	switch {
	case c.role.given() && c.playbook.given():
		r.fault(c.playbook.line, "%s has a role (line %d) and a playbook; keep one of the two", what, c.role.line)
		r.role(search, c.role)
		r.playbook(search, c.playbook)
		return Content{}
	case c.role.given():
		return r.role(search, c.role)
	case c.playbook.given():
		return r.playbook(search, c.playbook)
	default:
		r.fault(line, "%s has no role and no playbook; add one of the two", what)
		return Content{}
	}
}

func (r *reader) role(search Search, role located) Content {
	if !r.filled("role", role, "the name of a role") {
		return Content{}
	}
	var looked []string
	for _, candidate := range search.roles(role.text) {
		if !isDir(candidate.dir) {
			if !slices.Contains(looked, candidate.dir) {
				looked = append(looked, candidate.dir)
			}
			continue
		}
		if !hasMain(candidate.dir, "tasks") && !hasMain(candidate.dir, "meta") {
			r.fault(role.line, "role: %s holds no role; give it a tasks/main.yml", candidate.dir)
			return Content{}
		}
		return candidate.content
	}
	r.fault(role.line, "role: %q was not found; looked for %s; write a role's name, namespace.collection.role or an absolute path, or set ANSIBLE_ROLES_PATH",
		role.text, strings.Join(looked, ", "))
	return Content{}
}

func (r *reader) playbook(search Search, playbook located) Content {
	if !r.filled("playbook", playbook, "the path of a playbook") {
		return Content{}
	}
	path := search.absolute(playbook.text)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		r.fault(playbook.line, "playbook: %q was not found; looked for %s; write a path relative to the operator's directory", playbook.text, path)
		return Content{}
	case !info.Mode().IsRegular():
		r.fault(playbook.line, "playbook: %s is no file; write the path of a playbook", path)
		return Content{}
	default:
		return Content{Playbook: path}
	}
}

// candidate is a directory that may be the role.
type candidate struct {
	dir     string
	content Content
}

// roles are the places of a role, in the order of search.
func (s Search) roles(role string) []candidate {
	if filepath.IsAbs(role) {
		return []candidate{inDirectory(role)}
	}
	var places []candidate
	if parts := strings.Split(role, "."); len(parts) >= 3 {
		below := filepath.Join(parts[0], parts[1], "roles", filepath.Join(parts[2:]...))
		for _, dir := range s.CollectionsPath {
			dir = s.absolute(dir)
			if filepath.Base(dir) != "ansible_collections" {
				dir = filepath.Join(dir, "ansible_collections")
			}
			places = append(places, candidate{filepath.Join(dir, below), Content{Role: role}})
		}
	}
	for _, dir := range s.RolesPath {
		dir = s.absolute(dir)
		places = append(places, inDirectory(filepath.Join(dir, role)), inDirectory(filepath.Join(dir, "roles", role)))
	}
	return append(places, inDirectory(s.absolute(filepath.Join("roles", role))))
}

// inDirectory is a role that is found by its directory.
func inDirectory(dir string) candidate {
	dir = filepath.Clean(dir)
	return candidate{dir, Content{Role: filepath.Base(dir), RolesPath: filepath.Dir(dir)}}
}

// absolute is the path below the operator's directory, or the path itself when
// it is absolute.
func (s Search) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(s.Dir, path)
}

// hasMain reports whether Ansible would load the part of a role.
func hasMain(role, part string) bool {
	for _, name := range [...]string{"main.yml", "main.yaml", "main.json", "main"} {
		if info, err := os.Stat(filepath.Join(role, part, name)); err == nil && (info.Mode().IsRegular() || info.IsDir()) {
			return true
		}
	}
	return false
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

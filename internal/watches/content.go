package watches

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ensign-operator/ensign/internal/suggest"
)

// findContent finds the role or playbook of an owner ("the watch" or "the finalizer"), whose fields
// begin on line. After a fault, and if search.KindsOnly is set, it returns an empty Content. The
// search does not affect the check that one of the two is there.
func (p *parser) findContent(search Search, what string, line int, c rawContent) Content {
	switch {
	case c.role.isSet() && c.playbook.isSet():
		p.addFault(c.playbook.line, "%s has a role (line %d) and a playbook; keep one of the two", what, c.role.line)
		p.findRole(search, c.role)
		p.findPlaybook(search, c.playbook)
		return Content{}
	case c.role.isSet():
		return p.findRole(search, c.role)
	case c.playbook.isSet():
		return p.findPlaybook(search, c.playbook)
	default:
		p.addFault(line, "%s has no role and no playbook%s; add one of them", what, alternative(what))
		return Content{}
	}
}

func (p *parser) findRole(search Search, role textField) Content {
	if !p.notEmpty("role", role, "the name of a role") || search.KindsOnly {
		return Content{}
	}
	var searched []string
	for _, candidate := range search.roleCandidates(role.text) {
		if !isDir(candidate.dir) {
			if !slices.Contains(searched, candidate.dir) {
				searched = append(searched, candidate.dir)
			}
			continue
		}
		if !hasMain(candidate.dir, "tasks") && !hasMain(candidate.dir, "meta") {
			p.addFault(role.line, "role: %s holds no role; give it a tasks/main.yml", candidate.dir)
			return Content{}
		}
		return candidate.content
	}
	p.addFault(role.line, "role: %q was not found; looked for %s; write a role's name, namespace.collection.role or an absolute path, or set ANSIBLE_ROLES_PATH%s",
		role.text, strings.Join(searched, ", "), meantFile(role.text, searched...))
	return Content{}
}

func (p *parser) findPlaybook(search Search, playbook textField) Content {
	if !p.notEmpty("playbook", playbook, "the path of a playbook") || search.KindsOnly {
		return Content{}
	}
	path := search.absolute(playbook.text)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		p.addFault(playbook.line, "playbook: %q was not found; looked for %s; write a path relative to the operator's directory%s", playbook.text, path, meantFile(playbook.text, path))
		return Content{}
	case !info.Mode().IsRegular():
		p.addFault(playbook.line, "playbook: %s is not a file; write the path of a playbook", path)
		return Content{}
	default:
		return Content{Playbook: path}
	}
}

// meantFile says which file or directory may be meant by a name that is not at any of the
// paths: one beside it, of a similar name.
func meantFile(name string, paths ...string) string {
	var known []string
	for _, path := range paths {
		entries, _ := os.ReadDir(filepath.Dir(path)) // Without it there is no suggestion.
		for _, entry := range entries {
			known = append(known, strings.TrimSuffix(name, filepath.Base(path))+entry.Name())
		}
	}
	return suggest.DidYouMean(name, known)
}

// roleCandidate is a directory in which a role may be, and the Content if it is there.
type roleCandidate struct {
	dir     string
	content Content
}

// roleCandidates returns the directories in which the role may be, in the order of search.
func (s Search) roleCandidates(role string) []roleCandidate {
	if filepath.IsAbs(role) {
		return []roleCandidate{roleInDirectory(s.absolute(role))}
	}
	var candidates []roleCandidate
	if parts := strings.Split(role, "."); len(parts) >= 3 {
		below := filepath.Join(parts[0], parts[1], "roles", filepath.Join(parts[2:]...))
		for _, tree := range Trees(s.CollectionsPath) {
			candidates = append(candidates, roleCandidate{filepath.Join(s.absolute(tree), below), Content{Role: role}})
		}
	}
	for _, dir := range s.RolesPath {
		dir = s.absolute(dir)
		candidates = append(candidates, roleInDirectory(filepath.Join(dir, role)), roleInDirectory(filepath.Join(dir, "roles", role)))
	}
	return append(candidates, roleInDirectory(s.absolute(filepath.Join("roles", role))))
}

// Trees returns the ansible_collections directories of a search path.
func Trees(path []string) []string {
	trees := slices.Clone(path)
	for i, dir := range trees {
		if filepath.Base(dir) != "ansible_collections" {
			trees[i] = filepath.Join(dir, "ansible_collections")
		}
	}
	return trees
}

// Contents returns the watch's content and that of its finalizer.
func (w *Watch) Contents() []Content {
	contents := []Content{w.Content}
	if w.Finalizer != nil {
		contents = append(contents, w.Finalizer.Content)
	}
	return contents
}

// ContentPaths returns the files and directories that runs of the watch may read: the
// directory of its role with the roles beside it, the directory of its playbook, the
// collection of its role, and the roles path. trees are those of Trees.
func (w *Watch) ContentPaths(roles, trees []string) []string {
	paths := slices.Clone(roles)
	for _, c := range w.Contents() {
		switch {
		case c.Playbook != "":
			paths = append(paths, filepath.Dir(c.Playbook))
		case c.RolesPath != "":
			paths = append(paths, c.RolesPath)
		case c.Role != "":
			parts := strings.SplitN(c.Role, ".", 3)
			for _, tree := range trees {
				paths = append(paths, filepath.Join(tree, parts[0], parts[1]))
			}
		}
	}
	return paths
}

// roleInDirectory returns the candidate for a role that Ansible finds by its directory.
func roleInDirectory(dir string) roleCandidate {
	dir = filepath.Clean(dir)
	return roleCandidate{dir, Content{Role: filepath.Base(dir), RolesPath: filepath.Dir(dir)}}
}

// absolute returns the path as an absolute one. A relative path starts in the operator's
// directory.
func (s Search) absolute(path string) string {
	switch {
	case !filepath.IsAbs(path):
		return filepath.Join(s.Dir, path)
	case s.Here != nil:
		return filepath.Clean(s.Here(path))
	default:
		return filepath.Clean(path)
	}
}

// hasMain reports whether the role has a main file for the part (tasks or meta) that
// Ansible would load.
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

// alternative names the other content that the watch may have in place of a role or playbook.
func alternative(what string) string {
	if what == "the watch" {
		return " and no chart"
	}
	return ""
}

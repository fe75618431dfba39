package runner

import (
	"path/filepath"
	"strings"
)

// place shortens where a task stands, as file:line, to what its author knows it by:
// the path from the directory of the playbook, of the directory of roles, or of the
// collections on. A task of the playbook that ansible-runner made for a role stands
// nowhere.
func (r *Runner) place(spec Spec, path, project string) string {
	if made, found := strings.CutPrefix(path, project); found && generated.MatchString(made) {
		return ""
	}
	if _, within, found := strings.Cut(path, "/ansible_collections/"); found {
		return within
	}
	var roots []string
	if spec.Playbook != "" {
		roots = append(roots, filepath.Dir(spec.Playbook))
	}
	for _, roles := range append([]string{spec.RolesPath}, r.RolesPath...) {
		roots = append(roots, filepath.Dir(roles))
	}
	for _, root := range roots {
		if within, found := strings.CutPrefix(path, root+"/"); found {
			return within
		}
	}
	return path
}

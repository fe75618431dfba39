package runner

import (
	"path/filepath"
	"strings"
)

// shortTaskPath shortens the path of a task, as file:line, to a path that its author knows:
// from the parent directory of the playbook or of the directory of roles, or from
// ansible_collections. It returns "" for a task of the playbook that ansible-runner
// generated for a role.
func (r *Runner) shortTaskPath(spec Spec, path, project string) string {
	if made, found := strings.CutPrefix(path, project); found && generatedPlaybook.MatchString(made) {
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

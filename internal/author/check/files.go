package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// missingFiles adds templates and files that tasks and lookups name, and that are not there.
func (p *Project) missingFiles(u *Unit) {
	p.missingInTasks(u)
	p.missingInLookups(u)
}

func (p *Project) missingInTasks(u *Unit) {
	for _, t := range u.Tasks {
		switch module := source.Plain(t.Module); {
		case module == "template":
			p.missingFile(u, t, "templates", t.Arg("src"))
		case module == "copy" && !source.True(t.Arg("remote_src")), module == "script":
			p.missingFile(u, t, "files", t.Arg("src", "cmd"))
		case rights.Module(t) == "k8s":
			template := t.Arg("template")
			if path := source.Field(template, "path"); path != nil {
				template = path
			}
			p.missingFile(u, t, "templates", template)
			if name := source.Scalar(t.Arg("src")); !source.True(t.Arg("remote_src")) && t.Keys["delegate_to"] == nil && !strings.Contains(name, "://") {
				p.missingFile(u, t, "files", t.Arg("src"))
			}
		}
	}
}

func (p *Project) missingInLookups(u *Unit) {
	for _, t := range u.Texts {
		for _, l := range t.Analysis.Lookups {
			part := map[string]string{"template": "templates", "file": "files"}[source.Plain(l.Plugin)]
			if _, lenient := l.Options["errors"]; part == "" || lenient || len(l.Terms) == 0 {
				continue
			}
			if name, ok := l.Terms[0].Literal.(string); ok && !strings.Contains(name, "{{") && !u.hasFile(t.Task, part, name) {
				p.addMissingFile(t.At(l.Line), name, part)
			}
		}
	}
}

func (p *Project) missingFile(u *Unit, t *source.Task, part string, n *yaml.Node) {
	if n == nil || n.Kind != yaml.ScalarNode {
		return
	}
	name := strings.TrimSpace(n.Value)
	if name == "" || strings.Contains(name, "{{") || strings.Contains(name, "{%") || u.hasFile(t, part, name) {
		return
	}
	p.addMissingFile(source.Place(t.File, n), name, part)
}

func (p *Project) addMissingFile(at source.Position, name, part string) {
	p.add(finding{
		"missing-file", report.Warning, at, fmt.Sprintf("there is no %s in %s", name, part),
		"a run that gets here fails", "correct the name, or add the file",
	})
}

// hasFile reports whether the file is beside the task, or in a role or playbook of the unit:
// Ansible looks in those that include the task's own, too. A path from the root may come to be in
// a run, or in the image.
func (u *Unit) hasFile(t *source.Task, part, name string) bool {
	if filepath.IsAbs(name) || strings.HasPrefix(name, "~") {
		return true
	}
	dirs := u.directories()
	if t != nil {
		dirs = append(dirs, t.RoleDir, filepath.Dir(t.File), filepath.Dir(filepath.Dir(t.File)))
	}
	return slices.ContainsFunc(dirs, func(dir string) bool {
		for _, path := range []string{filepath.Join(dir, part, name), filepath.Join(dir, name)} {
			if _, err := os.Stat(path); dir != "" && err == nil {
				return true
			}
		}
		return false
	})
}

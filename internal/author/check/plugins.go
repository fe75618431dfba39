package check

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ensign-operator/ensign/internal/ansible/files"
	"github.com/ensign-operator/ensign/internal/ansible/reader"
	"github.com/ensign-operator/ensign/internal/author/fix"
	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/config"
)

// places are where something is used, by its name.
type places map[string]source.Position

func (p places) add(name string, at source.Position) {
	if _, known := p[name]; !known && name != "" {
		p[name] = at
	}
}

// installed adds plugins and libraries that are missing. It returns the faults by Ansible's own
// loader.
func (p *Project) installed(ctx context.Context) ([]reader.Fault, error) {
	modules, filters, tests, lookups := map[string]*source.Task{}, places{}, places{}, places{}
	var question reader.Question
	seen := map[string]bool{}
	for _, u := range p.Units {
		for _, t := range u.Tasks {
			if key := moduleKey(t); t.Module != "" && !strings.Contains(t.Module, "{{") && modules[key] == nil {
				modules[key] = t
			}
			lookups.add(t.With, t.Position)
		}
		p.used(u, filters, tests, lookups)
		for _, e := range u.Entry {
			if !seen[e.Path] {
				seen[e.Path] = true
				question.Syntax = append(question.Syntax, e)
			}
		}
	}
	keys := slices.Sorted(maps.Keys(modules))
	question.Directory, question.Playbooks, question.Image = p.options.Dir, p.playbooks(), config.ImageDir
	question.Installed = &reader.Installed{
		Filters: slices.Sorted(maps.Keys(filters)), Tests: slices.Sorted(maps.Keys(tests)), Lookups: slices.Sorted(maps.Keys(lookups)),
	}
	for _, key := range keys {
		question.Installed.Modules = append(question.Installed.Modules, reader.Module{Name: modules[key].Module, Collections: modules[key].Collections})
	}
	var refused func([][]string)
	question.Arguments, refused = p.arguments(p.customResources(ctx))
	answer, err := p.reader.Ask(question)
	if err != nil {
		return nil, err
	}
	found := map[string]reader.Plugin{}
	p.near = answer.Near
	for n, key := range keys {
		found[key] = answer.Modules[n]
		if t := modules[key]; source.Plain(t.Module) != "" {
			p.plugin("module", t.Module, t.Position, found[key])
		}
	}
	p.allOptions(found)
	for n, name := range question.Installed.Filters {
		p.plugin("filter", name, filters[name], answer.Filters[n])
	}
	for n, name := range question.Installed.Tests {
		p.plugin("test", name, tests[name], answer.Tests[n])
	}
	for n, name := range question.Installed.Lookups {
		p.plugin("lookup", name, lookups[name], answer.Lookups[n])
	}
	p.absentees()
	refused(answer.Arguments)
	return answer.Faults, nil
}

func (p *Project) allOptions(modules map[string]reader.Plugin) {
	for _, u := range p.Units {
		for _, t := range u.Tasks {
			p.moduleOptions(u, t, modules[moduleKey(t)])
		}
	}
}

// moduleKey is the same for tasks that get the same module.
func moduleKey(t *source.Task) string { return t.Module + " " + strings.Join(t.Collections, " ") }

func (p *Project) used(u *Unit, filters, tests, lookups places) {
	for _, t := range u.Texts {
		for _, f := range t.Analysis.Filters {
			filters.add(f.Name, t.At(f.Line))
		}
		for _, f := range t.Analysis.Tests {
			tests.add(f.Name, t.At(f.Line))
		}
		for _, l := range t.Analysis.Lookups {
			lookups.add(l.Plugin, t.At(l.Line))
		}
	}
}

// plugin adds a plugin that is not installed, or the libraries that it lacks.
func (p *Project) plugin(kind, name string, at source.Position, found reader.Plugin) {
	p.missing(found.Path != "", kind, name, at, found.Error)
	if strings.HasPrefix(found.FQCN, "ansible.") {
		return // Modules of Ansible's own need a library for some of their options alone.
	}
	for _, library := range found.Missing {
		p.absentLibraries.add(library, kind+" "+name, at)
	}
}

// missing adds a plugin that is not installed.
func (p *Project) missing(there bool, kind, name string, at source.Position, why string) {
	if there {
		return
	}
	parts := strings.Split(name, ".")
	message, remedy := fmt.Sprintf("there is no %s %s", kind, name), "correct the name; ansible-doc --list shows those that are installed"
	if len(parts) >= 3 && !strings.HasPrefix(name, "ansible.") || len(parts) >= 3 && parts[1] != "builtin" && parts[1] != "legacy" {
		collection := parts[0] + "." + parts[1]
		if len(files.FindCollection(collection, p.trees...)) == 0 {
			p.absentCollections.add(collection, kind+" "+name, at)
			if kind == "module" {
				p.absentCollections[collection].fix = append(p.absentCollections[collection].fix, p.renames(name)...)
			}
			return
		}
	}
	if why != "" {
		message += ": " + why
	}
	if near := p.near[kind+" "+name]; len(near) > 0 {
		remedy = "did you mean " + strings.Join(near, " or ") + "? Otherwise " + remedy
	}
	var edits []*fix.Edit
	if kind == "module" {
		if edits = p.renames(name); edits != nil {
			remedy = "it is called " + edits[0].Value + " now"
		}
	}
	p.addFixable(finding{"missing-plugin", report.Error, at, message, "a run that gets here fails", remedy}, edits)
}

// playbooks returns the directories of playbooks.
func (p *Project) playbooks() []string {
	var found []string
	for _, u := range p.Units {
		for _, e := range u.Entry {
			if dir := filepath.Dir(e.Path); e.Kind == "playbook" && !slices.Contains(found, dir) {
				found = append(found, dir)
			}
		}
	}
	return found
}

// directories returns the directories of roles and playbooks.
func (u *Unit) directories() []string {
	found := map[string]bool{u.Dir: true}
	for _, t := range u.Tasks {
		found[t.RoleDir] = true
	}
	delete(found, "")
	return slices.Sorted(maps.Keys(found))
}

var unresolved = regexp.MustCompile(`(?i)couldn't resolve module|the role .* was not found`)

// syntax adds the faults by Ansible's own loader that nothing else has found already.
func (p *Project) syntax(faults []reader.Fault) {
	known := map[string]bool{}
	for _, f := range p.findings {
		known[f.File] = known[f.File] || f.ID == "syntax" || f.ID == "jinja"
	}
	for _, f := range faults {
		if strings.Contains(f.Message, "couldn't resolve module") || known[f.File] && !unresolved.MatchString(f.Message) {
			continue
		}
		certain := !strings.Contains(f.Message, "{{") // Else the name of a file depends on variables.
		p.add(finding{
			"syntax", errorIf(certain), source.Position{File: f.File, Line: f.Line, Column: f.Column}, f.Message,
			"Ansible's own loader refuses the content, so that no run begins, or a run ends here", "correct the line; ansible-playbook --syntax-check says the same",
		})
	}
}

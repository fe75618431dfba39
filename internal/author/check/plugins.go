package check

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/ensign-operator/ensign/internal/ansible/content"
	"github.com/ensign-operator/ensign/internal/ansible/reader"
	walk "github.com/ensign-operator/ensign/internal/author/content"
	"github.com/ensign-operator/ensign/internal/author/report"
)

// places are where something is used, by its name.
type places map[string]walk.Position

func (p places) add(name string, at walk.Position) {
	if _, known := p[name]; !known && name != "" {
		p[name] = at
	}
}

// installed adds plugins and libraries that are missing. It returns what Ansible's own loader
// says.
func (p *Project) installed(ctx context.Context) ([]reader.Fault, error) {
	modules, filters, tests, lookups := map[string]*walk.Task{}, places{}, places{}, places{}
	var question reader.Question
	seen := map[string]bool{}
	for _, u := range p.Units {
		for _, t := range u.Tasks {
			if key := t.Module + " " + strings.Join(t.Collections, " "); t.Module != "" && !strings.Contains(t.Module, "{{") && modules[key] == nil {
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
	question.Directory = p.options.Dir
	question.Installed = &reader.Installed{
		Filters: slices.Sorted(maps.Keys(filters)), Tests: slices.Sorted(maps.Keys(tests)), Lookups: slices.Sorted(maps.Keys(lookups)),
		Collections: p.collections(modules, filters, lookups), Directories: p.directories(),
	}
	for _, key := range keys {
		question.Installed.Modules = append(question.Installed.Modules, reader.Module{Name: modules[key].Module, Collections: modules[key].Collections})
	}
	answer, err := reader.Ask(ctx, p.env, question, p.trees, p.options.SearchPaths().Roles)
	if err != nil {
		return nil, err
	}
	p.near = answer.Near
	for n, key := range keys {
		p.module(modules[key], answer.Modules[n])
	}
	for n, name := range question.Installed.Filters {
		p.missing(answer.Filters[n], "filter", name, filters[name], "")
	}
	for n, name := range question.Installed.Tests {
		p.missing(answer.Tests[n], "test", name, tests[name], "")
	}
	for n, name := range question.Installed.Lookups {
		p.missing(answer.Lookups[n].Path != "", "lookup", name, lookups[name], answer.Lookups[n].Error)
	}
	p.optionVariables(answer.Variables)
	return answer.Faults, nil
}

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

func (p *Project) module(t *walk.Task, found reader.Plugin) {
	p.missing(found.Path != "" || walk.Plain(t.Module) == "", "module", t.Module, t.Position, found.Error)
	for _, library := range found.Missing {
		p.add(finding{
			"missing-library", report.Warning, t.Position, fmt.Sprintf("the module %s needs the Python library %s, which is not installed", t.Module, library),
			"the task fails in this Python environment, " + p.env.Bin, "add the library to the image: pip install " + library,
		})
	}
}

// missing adds a plugin that is not installed.
func (p *Project) missing(there bool, kind, name string, at walk.Position, why string) {
	if there {
		return
	}
	parts := strings.Split(name, ".")
	id, message, remedy := "missing-plugin", fmt.Sprintf("there is no %s %s", kind, name), "correct the name; ansible-doc --list shows those that are installed"
	if len(parts) >= 3 && !strings.HasPrefix(name, "ansible.") || len(parts) >= 3 && parts[1] != "builtin" && parts[1] != "legacy" {
		collection := parts[0] + "." + parts[1]
		if len(content.FindCollection(collection, p.trees...)) == 0 {
			id, message = "missing-collection", fmt.Sprintf("the %s %s is in the collection %s, which is not installed", kind, name, collection)
			remedy = "add " + collection + " to requirements.yml and install it with ansible-galaxy, or with pip as part of the image"
		}
	}
	if why != "" {
		message += ": " + why
	}
	if near := p.near[kind+" "+name]; len(near) > 0 {
		remedy = "did you mean " + strings.Join(near, " or ") + "? Otherwise " + remedy
	}
	p.add(finding{id, report.Error, at, message, "a run that gets here fails", remedy})
}

// directories returns the directories of roles and playbooks.
func (p *Project) directories() []string {
	var found []string
	for _, u := range p.Units {
		found = append(found, u.directories()...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func (u *Unit) directories() []string {
	found := map[string]bool{u.Dir: true}
	for _, t := range u.Tasks {
		found[t.RoleDir] = true
	}
	delete(found, "")
	return slices.Sorted(maps.Keys(found))
}

// collections returns the collections that the content names.
func (p *Project) collections(modules map[string]*walk.Task, others ...places) []reader.Collection {
	names := map[string]bool{}
	add := func(name string) {
		if parts := strings.Split(name, "."); len(parts) >= 3 && parts[0]+"."+parts[1] != "ansible.builtin" {
			names[parts[0]+"."+parts[1]] = true
		}
	}
	for _, t := range modules {
		add(t.Module)
	}
	for _, used := range others {
		for name := range used {
			add(name)
		}
	}
	var found []reader.Collection
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if dirs := content.FindCollection(name, p.trees...); len(dirs) > 0 {
			found = append(found, reader.Collection{Name: name, Dir: dirs[0].Dir})
		}
	}
	return found
}

// optionVariables adds variables of plugins that a resource can set and the manager does not
// refuse.
func (p *Project) optionVariables(all []reader.OptionVariable) {
	seen := map[string]bool{}
	for _, v := range all {
		if magic(v.Variable) || seen[v.Variable] || strings.HasPrefix(v.Variable, "sops_") && p.info.HasCollection("community.sops", p.trees...) {
			continue
		}
		seen[v.Variable] = true
		for _, u := range p.Units {
			key, at := u.Variables.Keys[v.Variable], walk.Position{File: p.watchesFile, Line: u.Watch.Line, Column: 1}
			severity, how := report.Warning, "the schema of its spec is open, so it may have a field that becomes "+v.Variable
			switch {
			case u.Watch.Chart != nil, v.Directory != "" && !slices.Contains(u.directories(), v.Directory):
				continue
			case key != nil:
				at, how = walk.Position{File: u.Variables.File, Line: key.Line, Column: key.Column}, "its field "+key.Value+" becomes "+v.Variable
			case !u.Variables.Open || u.Watch.Vars[v.Variable] != nil:
				continue
			case !u.Variables.Known:
				severity, how = report.Info, "no schema says that its spec has no field that becomes "+v.Variable
			}
			p.add(finding{
				"plugin-variable", severity, at, fmt.Sprintf("%s: %s, an option of the %s plugin %s", u.Watch.GVK.Kind, how, v.Kind, v.Plugin),
				"where the plugin is used, the resource's author sets that option with the operator's rights", "rename the field, close the schema, or set the variable in the watch's vars, which win",
			})
		}
	}
}

var unresolved = regexp.MustCompile(`(?i)couldn't resolve module|the role .* was not found`)

// syntax adds what Ansible's own loader says, where nothing else has found it already.
func (p *Project) syntax(faults []reader.Fault) {
	known := map[string]bool{}
	for _, f := range p.findings {
		known[f.File] = known[f.File] || f.ID == "syntax" || f.ID == "jinja"
	}
	for _, f := range faults {
		if strings.Contains(f.Message, "couldn't resolve module") || known[f.File] && !unresolved.MatchString(f.Message) {
			continue
		}
		severity := report.Error
		if strings.Contains(f.Message, "{{") {
			severity = report.Warning // The name of a file depends on variables.
		}
		p.add(finding{
			"syntax", severity, walk.Position{File: f.File, Line: f.Line, Column: f.Column}, f.Message,
			"Ansible's own loader refuses the content, so that no run begins, or a run ends here", "correct the line; ansible-playbook --syntax-check says the same",
		})
	}
}

package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// variables adds names that a custom resource can take over: its variables are extra variables,
// which win over all others.
func (p *Project) variables(u *Unit) {
	for _, d := range u.Definitions {
		if d.How == source.Default || magic(d.Name) || u.Watch.Vars[d.Name] != nil {
			continue
		}
		if _, declared := u.Variables.Fields[d.Name]; declared {
			p.shadowed(u, d)
		}
	}
}

// openSchemas adds the schemas that take any field, with the names that such a field could take
// over: one finding for each schema, however many names the content has.
func (p *Project) openSchemas() {
	names, watched := map[source.Position][]string{}, map[source.Position]*Unit{}
	for _, u := range p.Units {
		if !u.Variables.Known || !u.Variables.Open {
			continue
		}
		at := source.Place(u.Variables.File, u.Variables.OpenAt)
		watched[at] = u
		seen := map[string]bool{}
		for _, d := range u.Definitions {
			_, declared := u.Variables.Fields[d.Name]
			computed := d.How != source.Default && d.How != source.TaskVar && d.How != source.LoopVar
			if text := fmt.Sprintf("%s (%s)", d.Name, p.at(d.File, d.Line)); computed && !declared && !magic(d.Name) && u.Watch.Vars[d.Name] == nil && !seen[d.Name] {
				seen[d.Name] = true
				names[at] = append(names[at], text)
			}
		}
	}
	for at, all := range names {
		if len(all) == 0 {
			continue
		}
		slices.Sort(all)
		all = slices.Compact(all)
		p.add(finding{
			"shadowed-variable", report.Warning, at, fmt.Sprintf("the schema of the spec of %s is open, so a field of a resource can replace any of %d variables of the content: %s", watched[at].Watch.GVK.Kind, len(all), few(all)),
			"the field's value wins over the content's own, so whoever writes the resource decides what is computed there", "close the schema (remove x-kubernetes-preserve-unknown-fields from spec), and read free fields from the variable with the whole spec",
		})
	}
}

func (p *Project) shadowed(u *Unit, d *source.Definition) {
	if isDefault(d) {
		return
	}
	computed := d.How == source.Register || d.How == source.SetFact && !defaultsTo(d.Name, d.Value) || d.How == source.LoopVar
	p.add(finding{
		"shadowed-variable", errorIf(computed), d.Position,
		fmt.Sprintf("%s is %s here, and the field spec.%s of %s (%s)", d.Name, d.How, u.Variables.Keys[d.Name].Value, u.Watch.GVK.Kind, p.at(u.Variables.File, u.Variables.Keys[d.Name].Line)),
		"variables of the spec are extra variables and win: where a resource has the field, this definition has no effect", "choose another name, for example with the role's name as prefix",
	})
}

// isDefault reports whether a set_fact counts only where a resource lacks the field: its task, or a block
// around it, has the condition that the variable is not defined.
func isDefault(d *source.Definition) bool {
	if d.How != source.SetFact {
		return false
	}
	undefined := regexp.MustCompile(`^\(*\s*(not\s+\(?\s*` + d.Name + `\s+is\s+defined|` + d.Name + `\s+is\s+(not\s+defined|undefined))\s*\)*$`)
	for t := d.Task; t != nil; t = t.Parent {
		for _, n := range source.Each(t.Keys["when"]) {
			if strings.Contains(n.Value, " or ") {
				continue
			}
			if slices.ContainsFunc(regexp.MustCompile(`\sand\s`).Split(n.Value, -1), func(part string) bool { return undefined.MatchString(strings.TrimSpace(part)) }) {
				return true
			}
		}
	}
	return false
}

// defaultsTo reports whether a value is the variable itself, or a default where there is none.
func defaultsTo(name string, value *yaml.Node) bool {
	return regexp.MustCompile(`^\{\{\s*` + name + `\s*\|\s*(default|d)\b`).MatchString(strings.TrimSpace(source.Scalar(value)))
}

func (p *Project) at(file string, line int) string {
	return fmt.Sprintf("%s:%d", p.relative(file), line)
}

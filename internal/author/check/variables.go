package check

import (
	"fmt"

	"github.com/ensign-operator/ensign/internal/author/content"
	"github.com/ensign-operator/ensign/internal/author/report"
)

// variables adds names that a custom resource can take over: its variables are extra variables,
// which win over all others.
func (p *Project) variables(u *Unit) {
	seen := map[string]bool{}
	for _, d := range u.Definitions {
		if d.How == content.Default || magic(d.Name) || u.Watch.Vars[d.Name] != nil {
			continue
		}
		_, declared := u.Variables.Fields[d.Name]
		if declared {
			p.shadowed(u, d)
		}
		if declared || !u.Variables.Known || !u.Variables.Open || seen[d.Name] || d.How == content.TaskVar || d.How == content.LoopVar {
			continue
		}
		seen[d.Name] = true
		p.add(finding{
			"shadowed-variable", report.Warning, d.Position, fmt.Sprintf("a resource can have a field that becomes %s, which is %s here: the schema of its spec is open", d.Name, d.How),
			"the field's value wins over the content's own, so whoever writes the resource decides what is computed here", "close the schema (remove x-kubernetes-preserve-unknown-fields from spec), and read free fields from the variable with the whole spec",
		})
	}
}

func (p *Project) shadowed(u *Unit, d *content.Definition) {
	severity := report.Warning
	switch d.How {
	case content.Register, content.SetFact, content.LoopVar:
		severity = report.Error
	}
	p.add(finding{
		"shadowed-variable", severity, d.Position,
		fmt.Sprintf("%s is %s here, and the field spec.%s of %s (%s)", d.Name, d.How, u.Variables.Keys[d.Name].Value, u.Watch.GVK.Kind, p.at(u.Variables.File, u.Variables.Keys[d.Name].Line)),
		"variables of the spec are extra variables and win: where a resource has the field, this definition has no effect", "choose another name, for example with the role's name as prefix",
	})
}

func (p *Project) at(file string, line int) string {
	return fmt.Sprintf("%s:%d", p.relative(file), line)
}

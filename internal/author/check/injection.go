package check

import (
	"cmp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// Filters whose result cannot mean more than itself in YAML, or as a word of a shell.
//
//nolint:gochecknoglobals // Constants.
var (
	harmless  = strings.Fields("int float bool length count hash sha1 md5 checksum b64encode urlencode to_uuid")
	inYAML    = append(strings.Fields("to_json to_nice_json tojson to_yaml to_nice_yaml"), harmless...)
	inShell   = append([]string{"quote"}, harmless...)
	evaluates = strings.Fields("vars varnames template file fileglob first_found unvault env ini csvfile lines url password subelements")
)

// textSources returns the values of the custom resource in the text that did not go through
// one of the filters.
func (u *Unit) textSources(t *source.Text, safe []string) []source.Source {
	var found []source.Source
	for _, output := range t.Analysis.Outputs {
		for _, flow := range output.Flows {
			found = append(found, u.unsafe(flow, t.Task, safe)...)
		}
	}
	return found
}

func (u *Unit) unsafe(flow reader.Flow, task *source.Task, safe []string) []source.Source {
	return slices.DeleteFunc(u.Sources(flow, task), func(s source.Source) bool {
		return slices.ContainsFunc(s.Filters, func(f string) bool { return slices.Contains(safe, f) }) ||
			u.Variables.Identity(s.Name, s.Path) || schema.Restricted(u.Variables.Find(s.Name, s.Path))
	})
}

// severity is an error for a text that the schema lets through, a warning where no schema tells.
func (u *Unit) severity(s source.Source) report.Severity {
	return errorIf(u.Variables.Has(s.Name) && u.Variables.Known && u.Variables.Find(s.Name, s.Path) != nil)
}

func describeSource(s source.Source) string {
	return strings.ReplaceAll(strings.Join(append([]string{s.Name}, s.Path...), "."), ".[]", "[]")
}

// injections adds where a text of the custom resource may become more than a text.
func (p *Project) injections(u *Unit) {
	written := map[string][]*source.Text{} // templates by the file that a task makes of them
	for _, t := range u.Tasks {
		p.yamlArgument(u, t, written)
		p.command(u, t)
		p.termsOf(u, t)
	}
	for _, t := range u.Texts {
		p.fromYAML(u, t)
		p.evaluated(u, t)
	}
}

// yamlArgument adds pasted text in the objects of a task, and in the templates that it names.
func (p *Project) yamlArgument(u *Unit, t *source.Task, written map[string][]*source.Text) {
	if source.Plain(t.Module) == "template" {
		if dest := source.Scalar(t.Arg("dest", "path")); dest != "" {
			written[dest] = append(written[dest], u.filesOf(t, u.templates(t))...)
		}
		return
	}
	if rights.Module(t) == "" {
		return
	}
	for _, text := range append(u.filesOf(t, u.templates(t)), written[source.Scalar(t.Arg("src"))]...) {
		p.pasted(u, text)
	}
	n := rights.Definition(t)
	if n == nil {
		return
	}
	for _, element := range source.Items(n) {
		p.yamlText(u, t, element)
	}
	p.yamlText(u, t, n)
}

func (p *Project) yamlText(u *Unit, t *source.Task, n *yaml.Node) {
	text := u.Text(n)
	switch {
	case text == nil || text.Analysis.Error != "":
	case !text.Analysis.Whole:
		p.pasted(u, text)
	default:
		for _, l := range text.Analysis.Lookups {
			for _, file := range u.lookedUp(l, t) {
				p.pasted(u, file)
			}
		}
		values, _ := u.Values(n, t)
		for _, v := range values {
			if other := u.Text(v.Node); other != nil && !other.Analysis.Whole {
				p.pasted(u, other)
			}
		}
		p.definedText(u, t, text)
	}
}

// definedText adds YAML text in variables that the text reads.
func (p *Project) definedText(u *Unit, t *source.Task, text *source.Text) {
	for _, output := range text.Analysis.Outputs {
		for _, flow := range output.Flows {
			for _, d := range u.Defined(flow.Name, t) {
				if other := u.Text(d.Value); other != nil && !other.Analysis.Whole {
					p.pasted(u, other)
				}
			}
		}
	}
}

// pasted adds the values of the custom resource in YAML text: one finding for each template in
// it, of all values that it may have.
func (p *Project) pasted(u *Unit, t *source.Text) {
	for _, output := range t.Analysis.Outputs {
		var values []string
		certain := false
		for _, flow := range output.Flows {
			for _, s := range u.unsafe(flow, t.Task, inYAML) {
				values = append(values, describeSource(s))
				certain = certain || u.severity(s) == report.Error
			}
		}
		if values = slices.Compact(slices.Sorted(slices.Values(values))); len(values) == 0 {
			continue
		}
		verb := map[bool]string{true: " is", false: " are"}[len(values) == 1]
		p.add(finding{
			"yaml-text", errorIf(certain), t.At(output.Line), "the resource's " + few(values) + verb + " pasted into YAML text",
			"a value with a line break adds fields of its author's choice to the object", "give a map instead of a text, or write | to_json behind the value",
		})
	}
}

// fromYAML adds text of the custom resource that is read as YAML.
func (p *Project) fromYAML(u *Unit, t *source.Text) {
	for _, output := range t.Analysis.Outputs {
		for _, flow := range output.Flows {
			reads := func(f string) bool { return f == "from_yaml" || f == "from_yaml_all" }
			if flow.Lookup >= 0 && slices.ContainsFunc(flow.Filters, reads) {
				for _, file := range u.lookedUp(t.Analysis.Lookups[flow.Lookup], t.Task) {
					p.pasted(u, file)
				}
				continue
			}
			for _, s := range u.unsafe(flow, t.Task, inYAML) {
				if slices.ContainsFunc(s.Filters, reads) {
					p.add(finding{
						"yaml-text", u.severity(s), t.At(output.Line), "the resource's " + describeSource(s) + " is read as YAML",
						"the resource's author chooses all fields of the result, not only values", "give the fields of the spec types in the schema, and read them as they are",
					})
				}
			}
		}
	}
}

// evaluated adds text of the custom resource that Ansible takes for an expression, the name of
// a variable or of a file.
func (p *Project) evaluated(u *Unit, t *source.Text) {
	add := func(line int, s source.Source, as string) {
		severity := u.severity(s)
		if strings.HasPrefix(as, "an expression") && !u.Variables.Known {
			severity = report.Warning
		}
		p.add(finding{
			"text-as-expression", severity, t.At(line), "the resource's " + describeSource(s) + " is used as " + as,
			"Ansible never evaluates this text, so the task fails; if it is a name, the resource's author chooses which variable or file the task reads", "compare the value instead, such as when: mode == \"fast\", or choose from a map: {{ allowed[mode] }}",
		})
	}
	if !t.Bare && t.Analysis.Whole && (slices.Contains(conditions, t.Where) || t.Where == "var") {
		for _, s := range u.textSources(t, []string{"bool", "int"}) {
			if kind := schema.Type(u.Variables.Find(s.Name, s.Path)); kind != "boolean" {
				add(0, s, "an expression, in "+t.Where)
			}
		}
	}
	for _, index := range t.Analysis.Indexes {
		for _, flow := range index.Flows {
			for _, s := range u.unsafe(flow, t.Task, nil) {
				add(index.Line, s, "the name of a variable, in vars[…]")
			}
		}
	}
	p.lookups(u, t, add)
}

// lookups adds lookups of names from the custom resource.
func (p *Project) lookups(u *Unit, t *source.Text, add func(line int, s source.Source, as string)) {
	for _, l := range t.Analysis.Lookups {
		plugin := source.Plain(l.Plugin)
		for _, term := range l.Terms {
			for _, flow := range term.Flows {
				for _, s := range u.unsafe(flow, t.Task, nil) {
					switch {
					case plugin == "pipe":
						p.addCommand(u, t.At(l.Line), s, "a command, by the lookup pipe", inShell)
					case slices.Contains(evaluates, plugin):
						add(l.Line, s, "what the lookup "+plugin+" reads")
					}
				}
			}
		}
	}
}

// lookedUp returns the texts of the templates that a lookup of a task renders.
func (u *Unit) lookedUp(l reader.Lookup, t *source.Task) []*source.Text {
	if source.Plain(l.Plugin) != "template" || len(l.Terms) == 0 {
		return nil
	}
	names, _ := u.TermNames(l.Terms[0], t)
	return u.filesOf(t, names)
}

// filesOf returns the texts of the templates that the task names.
func (u *Unit) filesOf(t *source.Task, names []string) []*source.Text {
	var found []*source.Text
	if t = cmp.Or(t, u.anyTask()); t == nil {
		return nil
	}
	for _, name := range names {
		paths := source.FindFiles(t, "templates", name)
		for _, text := range u.Texts {
			if text.Where == "template" && slices.Contains(paths, text.File) {
				found = append(found, text)
			}
		}
	}
	return found
}

package check

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
)

//nolint:gochecknoglobals // A constant.
var conditions = []string{"when", "until", "failed_when", "changed_when", "that"}

// expressions adds expressions that ansible-core 2.19 treats differently.
func (p *Project) expressions(u *Unit) {
	for _, t := range u.Texts {
		p.operands(u, t)
		switch {
		case slices.Contains(conditions, t.Where):
			p.condition(u, t)
		case t.Analysis.Error != "" || t.Where == "template" || t.Where == "name":
		case t.Task != nil && t.Node == t.Task.Loop && t.Task.With == "" && isText(t.Analysis.Types):
			p.add(finding{
				"native-type", report.Error, t.At(0), "the loop is over the text " + quoted(t.Value) + ", and not over a list",
				"since ansible-core 2.19 a text that looks like a list stays a text, and the task fails", "write one expression that is a list, such as {{ names | map('upper') | list }}",
			})
		case t.Analysis.MayBeEmpty:
			p.add(finding{
				"empty-template", report.Warning, t.At(t.Analysis.Line), "this template of statements may render nothing, which is None and not the empty text",
				"since ansible-core 2.19 a module gets None, or a text gets the word None", "write an expression, such as {{ 'x' if debug else '' }}, or | default('', true) where the value is used",
			})
		}
	}
	for _, t := range u.Tasks {
		if rights.Module(t) == "k8s" {
			if n := rights.Definition(t); n != nil {
				values, _ := u.Values(n, t)
				for _, v := range values {
					p.native(u, t, v.Node, nil, v.File)
				}
			}
		}
	}
}

// isText reports whether a value is a text for certain.
func isText(types []reader.Type) bool {
	return len(types) > 0 && !slices.ContainsFunc(types, func(t reader.Type) bool { return t.Type != "str" })
}

func (p *Project) condition(u *Unit, t *source.Text) {
	const remedy = "say what is meant: `| bool` for a text such as \"yes\", `is truthy` or `| length > 0` for not empty, `is defined`"
	if !t.Bare {
		if sources := u.textSources(t, nil); len(sources) > 0 && t.Analysis.Whole {
			return // See injection.go.
		}
	}
	if t.Analysis.Error != "" && !strings.Contains(t.Value, "{{") {
		return
	}
	edits := p.rewritten(u, t)
	if strings.Contains(t.Value, "{{") || strings.Contains(t.Value, "{%") {
		severity, why := report.Warning, "ansible-core 2.23 takes no templates in conditions, and earlier versions warn"
		if t.Analysis.Error != "" {
			severity, why = report.Error, "since ansible-core 2.19 the task fails: a condition is an expression"
		}
		p.addFixable(finding{"templated-condition", severity, t.At(0), t.Where + ": a template in the condition " + quoted(t.Value), why, "write the expression without {{ }}"}, edits)
	}
	if what, certain := u.notBoolean(t.Analysis.Types, t.Task); what != "" {
		p.addFixable(finding{
			"non-boolean-condition", errorIf(certain), t.At(0), t.Where + ": the result of " + quoted(t.Value) + " may be " + what + ", and not a boolean",
			"since ansible-core 2.19 a condition that is not a boolean fails the task", remedy,
		}, edits)
	}
}

// notBoolean returns a type that a condition may have and that is not a boolean; "" if there is none.
func (u *Unit) notBoolean(types []reader.Type, task *source.Task) (what string, certain bool) {
	for _, kind := range types {
		if what, certain = u.typeOf(kind, task, 0); what != "" && what != "bool" {
			return what, certain && len(types) == 1
		}
	}
	return "", false
}

// typeOf returns a type other than boolean in words, "bool", or "" if it is not known. certain says
// that no run has another one.
func (u *Unit) typeOf(kind reader.Type, task *source.Task, depth int) (what string, certain bool) {
	if kind.Type != "" || depth > 5 {
		return inWords(kind.Type), true
	}
	defined := u.Defined(kind.Name, task)
	if u.fromCR(kind.Name, defined) {
		return fromSchema(schema.Type(u.Variables.Find(kind.Name, kind.Path))), true
	}
	if len(defined) == 0 || u.Watch.Vars[kind.Name] != nil {
		return "", false
	}
	first := ""
	for n, d := range defined {
		this := u.definedType(d, kind.Path, depth)
		if n > 0 && this != first {
			return "", false
		}
		first = this
	}
	return first, false
}

func (u *Unit) definedType(d *source.Definition, path []string, depth int) string {
	switch {
	case d.How == source.Register:
		return registered(d.Task, path)
	case d.How == source.LoopVar || len(path) > 0 || d.Value == nil:
		return ""
	}
	if text := u.Text(d.Value); text != nil {
		if len(text.Analysis.Types) != 1 {
			return ""
		}
		what, _ := u.typeOf(text.Analysis.Types[0], d.Task, depth+1)
		return what
	}
	switch d.Value.Kind {
	case yaml.MappingNode:
		return inWords("dict")
	case yaml.SequenceNode:
		return inWords("list")
	}
	return inWords(map[string]string{"!!str": "str", "!!int": "int", "!!bool": "bool", "!!float": "float"}[d.Value.ShortTag()])
}

// parts are the types of further results of some modules, beside the results of all modules.
var parts = map[string]map[string]string{ //nolint:gochecknoglobals // A table.
	"uri": {"status": "a number"}, "stat": {"stat": "a mapping"}, "find": {"files": "a list", "matched": "a number"},
	"slurp": {"content": "a text"}, "k8s_info": {"resources": "a list"}, "k8s": {"result": "a mapping"}, "k8s_exec": {"return_code": "a number"},
}

// registered is the type of a part of a task's result, of a task without a loop.
func registered(t *source.Task, path []string) string {
	if len(path) == 0 {
		return "a mapping"
	}
	if own := ofModule(t, path); own != "" {
		return own
	}
	if len(path) > 1 {
		return ""
	}
	switch path[0] {
	case "stdout", "stderr":
		return "a text"
	case "stdout_lines", "stderr_lines":
		return "a list"
	case "rc":
		return "a number"
	case "changed", "failed", "skipped":
		return "bool"
	}
	return ""
}

// ofModule is the type of a part of a result that the task's module has and others have not, "" if it is not known.
func ofModule(t *source.Task, path []string) string {
	if t == nil || t.Loop != nil {
		return ""
	}
	module := source.Plain(t.Module)
	module = module[strings.LastIndex(module, ".")+1:]
	switch {
	case module == "k8s_info" && len(path) > 1 && path[0] == "resources" && path[1] == reader.Element:
		return ofObject(path[2:])
	case module == "k8s" && path[0] == "result":
		return ofObject(path[1:])
	case len(path) == 1:
		return parts[module][path[0]]
	}
	return ""
}

// ofObject is the type of a part of an object of the API, as far as it is the same for all kinds.
func ofObject(path []string) string {
	switch at := strings.Join(path, "."); at {
	case "", "metadata", "metadata.labels", "metadata.annotations", "spec", "status":
		return "a mapping"
	case "metadata.finalizers", "metadata.ownerReferences", "metadata.managedFields", "status.conditions":
		return "a list"
	case "metadata.generation":
		return "a number"
	case "kind", "apiVersion", "metadata.name", "metadata.generateName", "metadata.namespace", "metadata.uid", "metadata.resourceVersion",
		"metadata.creationTimestamp", "metadata.deletionTimestamp", "status.phase":
		return "a text"
	default:
		parent := strings.Join(path[:len(path)-1], ".")
		if parent == "metadata.labels" || parent == "metadata.annotations" {
			return "a text"
		}
		return ""
	}
}

func inWords(kind string) string {
	return map[string]string{
		"str": "a text", "int": "a number", "float": "a number", "list": "a list", "dict": "a mapping", "NoneType": "None", "bool": "bool",
	}[kind]
}

func fromSchema(kind string) string {
	return map[string]string{
		"string": "a text", "integer": "a number", "number": "a number", "boolean": "bool", "array": "a list", "object": "a mapping",
	}[kind]
}

func quoted(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "…"
	}
	return "`" + text + "`"
}

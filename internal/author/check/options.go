package check

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/suggest"
)

// moduleOptions adds options that a task's module does not have, or not with such a value.
func (p *Project) moduleOptions(u *Unit, t *source.Task, module reader.Plugin) {
	if len(module.Options) == 0 || t.Args == nil || t.Args.Kind != yaml.MappingNode || source.Plain(t.Module) == "add_host" {
		return // A host that is added has any variables.
	}
	o := options{p: p, u: u, t: t, severity: report.Warning}
	for _, own := range []string{"ansible.builtin.", "ansible.legacy.", "kubernetes.core.", "ensign.operator."} {
		if strings.HasPrefix(module.FQCN, own) {
			o.severity = report.Error // Their documentation is complete.
		}
	}
	o.check(t.Args, module.Options, "")
}

type options struct {
	p        *Project
	u        *Unit
	t        *source.Task
	severity report.Severity
}

// check compares a mapping with the options that it may have. within is the path to it.
func (o options) check(n *yaml.Node, known reader.Options, within string) {
	byName := map[string]reader.Option{}
	for name, option := range known {
		for _, name := range append(option.Aliases, name) {
			byName[name] = option
		}
	}
	given, merged := map[string]bool{}, false
	for key, value := range source.Pairs(n) {
		option, is := byName[key.Value]
		switch {
		case key.Value == "<<" || strings.Contains(key.Value, "{{"):
			merged = true
		case key.Value == "module" && within == "" && !is: // A key of "action".
		case !is:
			o.unknown(key, slices.Collect(maps.Keys(byName)), within)
		default:
			o.value(key.Value, value, option, within)
		}
		for _, name := range append(option.Aliases, key.Value) {
			given[name] = true
		}
	}
	if !merged && !hasDefaults(o.u, o.t) {
		o.required(n, known, given, within)
	}
}

func (o options) unknown(key *yaml.Node, names []string, within string) {
	message := fmt.Sprintf("%s has no option %s%s", o.t.Module, within, key.Value)
	o.add(key, message+suggest.Slip(key.Value, names), "correct the name; ansible-doc "+o.t.Module+" lists the options")
}

// required adds options that a mapping lacks.
func (o options) required(n *yaml.Node, known reader.Options, given map[string]bool, within string) {
	at := n
	if within == "" {
		at = &yaml.Node{Line: o.t.Line, Column: o.t.Column}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if known[name].Required && !given[name] && !slices.ContainsFunc(known[name].Aliases, func(a string) bool { return given[a] }) {
			o.add(at, fmt.Sprintf("%s requires the option %s%s", o.t.Module, within, name), "add it; ansible-doc "+o.t.Module+" tells what it is for")
		}
	}
}

// hasDefaults reports whether module_defaults may give options to the task.
func hasDefaults(u *Unit, t *source.Task) bool {
	for around := t; around != nil; around = around.Parent {
		if around.Keys["module_defaults"] != nil {
			return true
		}
	}
	return t.RoleDir == "" || u.Watch.Content.Playbook != "" // A play may have them.
}

// value compares a literal value with the type and choices of an option.
func (o options) value(name string, n *yaml.Node, option reader.Option, within string) {
	switch {
	case n.Kind == yaml.MappingNode && len(option.Options) > 0:
		o.check(n, option.Options, within+name+".")
	case n.Kind == yaml.SequenceNode && len(option.Options) > 0:
		for _, element := range n.Content {
			if element.Kind == yaml.MappingNode {
				o.check(element, option.Options, within+name+"[].")
			}
		}
	case n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null" && !strings.Contains(n.Value, "{{") && !strings.Contains(n.Value, "{%"):
		o.literal(name, n, option, within)
	}
}

func (o options) literal(name string, n *yaml.Node, option reader.Option, within string) {
	switch {
	case len(option.Choices) > 0 && option.Type != "list" && !chosen(n, option):
		message := fmt.Sprintf("%s of %s can't be %s: it is one of %s", within+name, o.t.Module, quoted(n.Value), strings.Join(option.Choices, ", "))
		o.add(n, message+suggest.Slip(n.Value, option.Choices), "correct the value")
	case !fits(n.Value, option.Type):
		o.add(n, fmt.Sprintf("%s of %s can't be %s: its type is %s", within+name, o.t.Module, quoted(n.Value), option.Type), "correct the value")
	}
}

// chosen reports whether a value is one of an option's choices: a boolean may be written in
// many ways, and a line break as itself or by a backslash.
func chosen(n *yaml.Node, option reader.Option) bool {
	escaped := strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(n.Value)
	return slices.Contains(option.Choices, n.Value) || slices.Contains(option.Choices, escaped) || isBoolean(n.Value) && slices.ContainsFunc(option.Choices, isBoolean)
}

func isBoolean(text string) bool {
	return slices.Contains(strings.Fields("y yes on 1 true t 1.0 n no off 0 false f 0.0"), strings.ToLower(text))
}

func fits(text, kind string) bool {
	switch kind {
	case "bool":
		return isBoolean(text)
	case "int":
		_, err := strconv.ParseFloat(text, 64)
		return err == nil
	}
	return true
}

func (o options) add(n *yaml.Node, message, remedy string) {
	o.p.add(finding{
		"module-option", o.severity, source.Place(o.t.File, n), message,
		"a run that gets here fails", remedy,
	})
}

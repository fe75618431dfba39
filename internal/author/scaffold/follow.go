package scaffold

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
)

// follower brings files up to date with a schema that has changed.
type follower struct {
	*Kind

	plan *Plan
	// before are the properties of the spec before.
	before map[string]bool
}

func (f *follower) note(path string, line int, format string, args ...any) {
	f.plan.Notes = append(f.plan.Notes, fmt.Sprintf("%s:%d: ", path, line)+fmt.Sprintf(format, args...))
}

// mapping is a mapping in a file.
type mapping struct {
	path string
	text []byte
	node *yaml.Node
	key  *yaml.Node // of the mapping; nil for a whole file
}

// read reads a file, and finds a mapping in it. Without one it returns nil: a person may have
// removed the file, or the mapping.
func (f *follower) read(path string, find func(root *yaml.Node) (key, value *yaml.Node)) *mapping {
	text, err := os.ReadFile(filepath.Join(f.plan.dir, filepath.FromSlash(path)))
	if err != nil {
		return nil
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		f.note(path, 1, "it was not brought up to date, because it is not valid YAML: %v", err)
		return nil
	}
	if len(document.Content) == 0 {
		return nil
	}
	key, node := find(document.Content[0])
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	return &mapping{path, text, node, key}
}

// add plans further lines of a mapping.
func (f *follower) add(m *mapping, lines []string) {
	if len(lines) == 0 {
		return
	}
	text, err := addKeys(m.text, m.key, m.node, lines)
	if err != nil {
		f.note(m.path, m.node.Line, "add this by hand, because this program cannot edit YAML that is written in this way: %s", strings.Join(lines, ", "))
		return
	}
	f.plan.replace(m.path, m.text, text)
}

// sample adds required and new fields to the sample, and notes fields that the schema refuses.
func (f *follower) sample(path string) {
	m := f.read(path, func(root *yaml.Node) (key, value *yaml.Node) { return entryOf(root, "spec") })
	if m == nil {
		return
	}
	added := map[string]bool{}
	var lines []string
	for _, o := range f.options {
		value := ""
		switch {
		case valueOf(m.node, o.key) != nil:
		case o.required && o.fallback == nil:
			value = placeholder(o)
		case o.fallback != nil && !f.before[o.key]:
			value = flow(o.fallback)
		}
		if value != "" {
			added[o.key] = true
			lines = append(lines, scalar(o.key)+": "+value)
		}
	}
	f.misfits(path, "spec", m.node, f.schema, added)
	f.add(m, lines)
}

// misfits notes the values that a schema refuses, or that the API server drops. Required fields
// that are added are not missing.
func (f *follower) misfits(path, name string, value, schema *yaml.Node, added map[string]bool) {
	kind := textOf(schema, "type")
	switch value.Kind {
	case yaml.MappingNode:
		if kind != "" && kind != "object" {
			f.note(path, value.Line, "%s is not of type %s, which the CRD requires", name, kind)
			return
		}
		f.fields(path, name, value, schema, added)
	case yaml.SequenceNode:
		items := valueOf(schema, "items")
		if kind != "" && kind != "array" {
			f.note(path, value.Line, "%s is not of type %s, which the CRD requires", name, kind)
			return
		}
		for i, one := range value.Content {
			if items != nil {
				f.misfits(path, fmt.Sprintf("%s[%d]", name, i), one, items, nil)
			}
		}
	case yaml.ScalarNode:
		tags := map[string][]string{"string": {"!!str"}, "integer": {"!!int"}, "number": {"!!int", "!!float"}, "boolean": {"!!bool"}, "array": {}, "object": {}}
		if allowed, known := tags[kind]; known && !slices.Contains(allowed, value.ShortTag()) && value.ShortTag() != "!!null" {
			f.note(path, value.Line, "%s is not of type %s, which the CRD requires", name, kind)
			return
		}
		choices := valueOf(schema, "enum")
		if choices != nil && !slices.ContainsFunc(choices.Content, func(n *yaml.Node) bool { return n.Value == value.Value }) {
			f.note(path, value.Line, "%s is not one of the CRD's choices: %s", name, flow(choices))
		}
	}
}

func (f *follower) fields(path, name string, value, schema *yaml.Node, added map[string]bool) {
	properties := valueOr(schema, "properties")
	open := valueOf(schema, anything) != nil || valueOf(schema, "additionalProperties") != nil || len(properties.Content) == 0
	for i := 0; i+1 < len(value.Content); i += 2 {
		key := value.Content[i]
		switch property := valueOf(properties, key.Value); {
		case property != nil:
			f.misfits(path, name+"."+key.Value, value.Content[i+1], property, nil)
		case !open && key.Tag != "!!merge":
			f.note(path, key.Line, "the CRD has no field %s.%s any more: remove it here", name, key.Value)
		}
	}
	for _, required := range valueOr(schema, "required").Content {
		if valueOf(value, required.Value) == nil && !added[required.Value] && textOf(valueOr(properties, required.Value), "default") == "" {
			f.note(path, value.Line, "%s.%s is required and not here", name, required.Value)
		}
	}
}

// defaults adds new options to the role's defaults, and notes those that differ or are gone.
func (f *follower) defaults(path string) {
	m := f.read(path, func(root *yaml.Node) (key, value *yaml.Node) { return nil, root })
	var lines []string
	for _, o := range f.options {
		if o.fallback == nil {
			continue
		}
		line := scalar(o.name) + ": " + flow(o.fallback)
		switch {
		case m == nil && !f.before[o.key]:
			f.plan.Notes = append(f.plan.Notes, fmt.Sprintf("%s: a run that no operator started, such as Molecule's, lacks %s, because this file is not there or has no defaults", path, line))
		case m == nil:
		case valueOf(m.node, o.name) == nil && !f.before[o.key]:
			lines = append(lines, line+" # noqa: var-naming[no-role-prefix]")
		case valueOf(m.node, o.name) != nil:
			if here := valueOf(m.node, o.name); flow(here) != flow(o.fallback) {
				f.note(path, here.Line, "the default of %s is %s here, and %s in the argument specs", o.name, flow(here), flow(o.fallback))
			}
		}
	}
	if m != nil {
		f.gone(m, "")
		f.add(m, lines)
	}
}

// converge adds required fields to Molecule's play, and notes fields that are gone.
func (f *follower) converge(path string) {
	m := f.read(path, func(root *yaml.Node) (key, value *yaml.Node) {
		for _, play := range root.Content {
			for _, role := range valueOr(play, "roles").Content {
				if role.Value == f.Role || textOf(role, "role") == f.Role {
					return entryOf(play, "vars")
				}
			}
		}
		return nil, nil
	})
	var lines []string
	for _, o := range f.options {
		if o.required && o.fallback == nil && (m == nil || valueOf(m.node, o.name) == nil) {
			lines = append(lines, scalar(o.name)+": "+placeholder(o))
		}
	}
	switch {
	case m != nil:
		f.gone(m, "the play of ")
		f.add(m, lines)
	case len(lines) > 0:
		f.note(path, 1, "no play has the role %s and vars, so this was not added: %s", f.Role, strings.Join(lines, ", "))
	}
}

// gone notes the variables of a mapping that were options before.
func (f *follower) gone(m *mapping, where string) {
	for i := 0; i+1 < len(m.node.Content); i += 2 {
		name := m.node.Content[i]
		isOption := slices.ContainsFunc(f.options, func(o option) bool { return o.name == name.Value })
		for key := range f.before {
			if variable, err := extravars.SnakeCase(key); err == nil && variable == name.Value && !isOption {
				f.note(m.path, name.Line, "%s%s is no longer an option: remove it here, unless tasks use it", where, name.Value)
			}
		}
	}
}

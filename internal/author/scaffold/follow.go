package scaffold

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
	crds "github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// follower brings files up to date with a schema that has changed.
type follower struct {
	*Kind

	plan *Plan
	// before are the properties of the spec before.
	before map[string]bool
	// validator is that of the new CRD; nil if the API server refuses it.
	validator *crds.Validator
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
	documents, fault := source.Parse(path, text)
	if len(documents) == 0 {
		if fault != nil {
			f.note(path, max(fault.Line, 1), "it was not brought up to date: %s", fault.Message)
		}
		return nil
	}
	key, node := find(documents[0])
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
	m := f.read(path, func(root *yaml.Node) (key, value *yaml.Node) { return source.Entry(root, "spec") })
	if m == nil {
		return
	}
	var lines []string
	for _, o := range f.options {
		switch {
		case source.Field(m.node, o.key) != nil:
		case o.required && o.fallback == nil:
			lines = append(lines, scalar(o.key)+": "+placeholder(o))
		case o.fallback != nil && !f.before[o.key]:
			lines = append(lines, scalar(o.key)+": "+flow(o.fallback))
		}
	}
	f.add(m, lines)
	f.misfits(path)
}

// misfits notes the fields of the sample, with those that are added, that the API server drops or refuses.
func (f *follower) misfits(path string) {
	text, err := f.plan.read(path)
	documents, _ := source.Parse(path, text)
	if err != nil || f.validator == nil || len(documents) == 0 {
		return
	}
	object, err := crds.Object(documents[0])
	if err != nil {
		return // It is not an object with names.
	}
	problems := f.validator.Dropped(object)
	f.validator.Complete(object)
	for _, problem := range append(problems, f.validator.Problems(context.Background(), object, true)...) {
		f.note(path, source.At(documents[0], problem.Path).Line, "%s", problem.Message)
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
		case source.Field(m.node, o.name) == nil && !f.before[o.key]:
			lines = append(lines, line+" # noqa: var-naming[no-role-prefix]")
		case source.Field(m.node, o.name) != nil:
			if here := source.Field(m.node, o.name); flow(here) != flow(o.fallback) {
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
			for _, role := range source.Items(source.Field(play, "roles")) {
				if role.Value == f.Role || source.Scalar(role, "role") == f.Role {
					return source.Entry(play, "vars")
				}
			}
		}
		return nil, nil
	})
	var lines []string
	for _, o := range f.options {
		if o.required && o.fallback == nil && (m == nil || source.Field(m.node, o.name) == nil) {
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
	for name := range source.Pairs(m.node) {
		isOption := slices.ContainsFunc(f.options, func(o option) bool { return o.name == name.Value })
		for key := range f.before {
			if variable, err := extravars.SnakeCase(key); err == nil && variable == name.Value && !isOption {
				f.note(m.path, name.Line, "%s%s is no longer an option: remove it here, unless tasks use it", where, name.Value)
			}
		}
	}
}

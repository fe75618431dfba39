package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
)

// refresh plans the definition of a kind of the project anew, and what follows from its change in
// the sample, the role's defaults and Molecule's play: what is new is added, and what a person
// has to look at is noted with its line.
func (k *Kind) refresh(plan *Plan, paths *strings.Replacer) error {
	definition := paths.Replace("config/crd/bases/APIGROUP_PLURAL.yaml")
	text, err := os.ReadFile(filepath.Join(plan.dir, filepath.FromSlash(definition)))
	if errors.Is(err, fs.ErrNotExist) {
		content, err := renderFile("templates/kind/config/crd/bases/APIGROUP_PLURAL.yaml.tmpl", k)
		plan.create(definition, content)
		return err
	}
	if err != nil {
		return fmt.Errorf("read the definition: %w", err)
	}
	old, err := specIn(text, k.Version)
	if err != nil {
		return fmt.Errorf("%s:%w", definition, err)
	}
	if err := k.carryOver(definition, old.spec, plan); err != nil {
		return err
	}
	changed, err := old.replaced(text, k)
	if err != nil {
		return fmt.Errorf("%s:%w", definition, err)
	}
	plan.replace(definition, text, changed)
	f := follower{Kind: k, plan: plan, before: propertiesOf(old.spec)}
	f.sample(paths.Replace("config/samples/GROUP_VERSION_SINGULAR.yaml"))
	if k.Role != "" && k.ValuesFile == "" {
		f.defaults("roles/" + k.Role + "/defaults/main.yml")
		f.converge("molecule/default/converge.yml")
	}
	return nil
}

// replace plans the new content of a file that exists, if it differs.
func (p *Plan) replace(path string, before, after []byte) {
	if string(before) != string(after) {
		p.files = append(p.files, file{path: path, content: after, edits: true})
	}
}

// definition is where the schema of a version stands in a definition.
type definition struct {
	schema    *yaml.Node // of the whole object
	key, spec *yaml.Node // the property spec
}

// specIn finds the schema of a version in the text of a definition.
func specIn(text []byte, version string) (d definition, err error) {
	const remedy = "restore it, or move the file away and repeat the command, which then writes it anew"
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return d, fmt.Errorf(" %w: %s", err, remedy)
	}
	if len(document.Content) == 0 {
		return d, errors.New("1: the file is empty: " + remedy)
	}
	versions := valueOf(valueOr(document.Content[0], "spec"), "versions")
	if versions != nil {
		for _, one := range versions.Content {
			if name := valueOf(one, "name"); name != nil && name.Value == version {
				d.schema = valueOf(valueOr(one, "schema"), "openAPIV3Schema")
			}
		}
	}
	if d.schema != nil {
		d.key, d.spec = entryOf(valueOr(d.schema, "properties"), "spec")
	}
	if d.spec == nil {
		return d, fmt.Errorf("%d: the version %s has no schema of a spec: %s", document.Content[0].Line, version, remedy)
	}
	return d, nil
}

// replaced returns the text of a definition with another schema of the spec. All other lines stay.
func (d definition) replaced(text []byte, k *Kind) ([]byte, error) {
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	indented := strings.Split(indent(d.key.Column+1, k.SpecSchema), "\n")
	last := lastLine(lines, max(d.key.Line, deepest(d.spec)), d.key.Column)
	lines = slices.Replace(lines, d.key.Line-1, last, append([]string{strings.Repeat(" ", d.key.Column-1) + "spec:"}, indented...)...)
	// What the object as a whole requires stands above.
	key, required := entryOf(d.schema, "required")
	properties, _ := entryOf(d.schema, "properties")
	switch {
	case k.SpecRequired && required == nil && properties.Line <= d.key.Line:
		lines = slices.Insert(lines, properties.Line-1, strings.Repeat(" ", properties.Column-1)+"required: [spec]")
	case !k.SpecRequired && required != nil && len(required.Content) == 1 && required.Content[0].Value == "spec" && key.Line < d.key.Line:
		lines = slices.Delete(lines, key.Line-1, deepest(required))
	case k.SpecRequired && required != nil && !slices.ContainsFunc(required.Content, func(n *yaml.Node) bool { return n.Value == "spec" }):
		return nil, fmt.Errorf("%d: add spec to what is required, then repeat the command", required.Line)
	}
	result := []byte(strings.Join(lines, "\n") + "\n")
	if _, err := specIn(result, k.Version); err != nil {
		return nil, fmt.Errorf("%d: the schema is written in a way that this program cannot change: move the file away and repeat the command, which then writes it anew", d.key.Line)
	}
	return result, nil
}

// generated are the keywords that this package writes into a schema. description is one of them,
// but one that a person has added where the source has none stays.
var generated = strings.Fields("type required properties items enum default additionalProperties nullable " + anything) //nolint:gochecknoglobals // A constant.

// carryOver adds to the new schema what a person has added to the old one, such as a pattern or a
// rule: what argument specs and values can't say.
func (k *Kind) carryOver(path string, old *yaml.Node, plan *Plan) error {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(k.SpecSchema), &document); err != nil {
		return fmt.Errorf("read the schema: %w", err)
	}
	k.schema = document.Content[0]
	written := generated
	if k.Chart != "" {
		written = append(slices.Clone(generated), sameKeywords...)
	}
	kept := carry(old, k.schema, "spec", written)
	if len(kept) == 0 {
		return nil
	}
	plan.Notes = append(plan.Notes, fmt.Sprintf("%s: kept, because somebody added it there: %s", path, strings.Join(kept, ", ")))
	text, err := yamlText(k.schema)
	k.SpecSchema = text
	return err
}

func carry(from, to *yaml.Node, path string, written []string) (kept []string) {
	if from.Kind != yaml.MappingNode || to.Kind != yaml.MappingNode || textOf(from, "type") != textOf(to, "type") {
		return nil
	}
	for i := 0; i+1 < len(from.Content); i += 2 {
		if key := from.Content[i]; !slices.Contains(written, key.Value) && valueOf(to, key.Value) == nil {
			to.Content = append(to.Content, key, from.Content[i+1])
			kept = append(kept, path+": "+key.Value)
		}
	}
	if a, b := valueOf(from, "items"), valueOf(to, "items"); a != nil && b != nil {
		kept = append(kept, carry(a, b, path+"[]", written)...)
	}
	properties := valueOr(to, "properties")
	for i := 0; i+1 < len(properties.Content); i += 2 {
		if before := valueOf(valueOr(from, "properties"), properties.Content[i].Value); before != nil {
			kept = append(kept, carry(before, properties.Content[i+1], path+"."+properties.Content[i].Value, written)...)
		}
	}
	return kept
}

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
// removed the file, or what is in it.
func (f *follower) read(path string, find func(root *yaml.Node) (key, value *yaml.Node)) *mapping {
	text, err := os.ReadFile(filepath.Join(f.plan.dir, filepath.FromSlash(path)))
	if err != nil {
		return nil
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		f.note(path, 1, "it was not brought up to date, because it is no YAML: %v", err)
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
		f.note(m.path, m.node.Line, "add this by hand, because the lines stand in a way that this program cannot add to: %s", strings.Join(lines, ", "))
		return
	}
	f.plan.replace(m.path, m.text, text)
}

// sample adds to the sample what is required or new, and notes what the schema refuses.
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
			f.note(path, value.Line, "%s is no %s, as the definition wants it", name, kind)
			return
		}
		f.fields(path, name, value, schema, added)
	case yaml.SequenceNode:
		items := valueOf(schema, "items")
		if kind != "" && kind != "array" {
			f.note(path, value.Line, "%s is no %s, as the definition wants it", name, kind)
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
			f.note(path, value.Line, "%s is no %s, as the definition wants it", name, kind)
			return
		}
		choices := valueOf(schema, "enum")
		if choices != nil && !slices.ContainsFunc(choices.Content, func(n *yaml.Node) bool { return n.Value == value.Value }) {
			f.note(path, value.Line, "%s is none of the choices of the definition: %s", name, flow(choices))
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
			f.note(path, key.Line, "the definition has no field %s.%s any more: remove it here", name, key.Value)
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

// converge adds to Molecule's play what is required, and notes what is gone.
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
				f.note(m.path, name.Line, "%s%s is no option any more: remove it here, unless tasks use it", where, name.Value)
			}
		}
	}
}

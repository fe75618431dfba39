package schema

import (
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/watches"
)

// Variables are the variables of a watched kind's spec.
type Variables struct {
	// Known is set if a CRD of the project has a schema for the watched version.
	Known bool
	// Open is set if a spec may have fields that the schema does not name, or if there is none.
	Open bool
	// OpenAt is the node that opens the schema, where it is Known and Open.
	OpenAt *yaml.Node
	// File has the CRD.
	File string
	// Fields are the schemas of the fields by the names of their variables; Keys are the keys.
	Fields, Keys map[string]*yaml.Node

	object string // the name of the variable with the whole object
	root   *yaml.Node
	name   func(string) string
}

// For returns the variables of a watched kind.
func For(watch watches.Watch, crds []CRD) Variables {
	v := Variables{
		Open: true, Fields: map[string]*yaml.Node{}, Keys: map[string]*yaml.Node{}, name: Same, object: extravars.ObjectVariableName(watch.GVK),
	}
	if watch.SnakeCaseParameters {
		v.name = Snake
	}
	crd := Of(crds, watch.GVK.GroupKind())
	if crd == nil {
		return v
	}
	version := crd.Version(watch.GVK.Version)
	if version == nil || version.Root == nil {
		return v
	}
	v.File, v.root = crd.File, version.Root
	spec := specOf(version.Root)
	v.Known, v.Open = true, spec == nil && Open(version.Root) || spec != nil && Open(spec)
	if v.OpenAt = opening(version.Root); spec != nil {
		v.OpenAt = opening(spec)
	}
	for key, field := range properties(spec) {
		v.Fields[v.name(key.Value)], v.Keys[v.name(key.Value)] = field, key
	}
	return v
}

// Has reports whether the name is the variable of a field, or of the whole object.
func (v Variables) Has(name string) bool {
	return v.Fields[name] != nil || name == v.object || name == v.object+"_spec"
}

// Whole returns the names of the variables with the whole object and the whole spec.
func (v Variables) Whole() []string { return []string{v.object, v.object + "_spec"} }

// Find returns the schema of a variable's value at the path; nil if nothing is known of it.
func (v Variables) Find(name string, path []string) *yaml.Node {
	var at *yaml.Node
	switch name {
	case v.object:
		at, _, _ = Find(v.root, path, Same)
	case v.object + "_spec":
		at, _, _ = Find(specOf(v.root), path, Same)
	default:
		if n := v.Fields[name]; n != nil {
			at, _, _ = Find(n, path, v.name)
		}
	}
	return at
}

// Lacks returns the first element of the path into a variable's value that its closed schema does
// not name, with the names that it has there; "" if objects may have a value at the path.
func (v Variables) Lacks(variable string, path []string) (missing string, names []string) {
	n, name := v.Fields[variable], v.name
	switch variable {
	case v.object:
		if len(path) == 0 || path[0] != "spec" {
			return "", nil // Every object has metadata, and the status is the manager's.
		}
		n, name = v.root, Same
	case v.object + "_spec":
		n, name = specOf(v.root), Same
	}
	for _, element := range path {
		next, found, open := Find(n, []string{element}, name)
		if !found {
			if open || source.Field(n, "properties") == nil || element == "[]" {
				return "", nil
			}
			for key := range properties(n) {
				names = append(names, name(key.Value))
			}
			return element, names
		}
		n = next
	}
	return "", nil
}

// Identity reports whether the value is a name that Kubernetes has checked.
func (v Variables) Identity(name string, path []string) bool {
	if name != v.object || len(path) < 2 || path[0] != "metadata" {
		return false
	}
	switch path[1] {
	case "name", "namespace", "uid", "generation", "resourceVersion", "creationTimestamp":
		return true
	}
	return false
}

// Path is Find for a path into the whole object, with the names of the object itself.
func (v Variables) Path(path watches.Path) (at *yaml.Node, found, open bool) {
	return Find(v.root, path, Same)
}

// FreeMap returns the path, as the spec has it, of a map at or below a variable's value whose keys the CR
// chooses; nil if there is none, or if keys are not converted.
func (v Variables) FreeMap(variable string, path []string) []string {
	n := v.Fields[variable]
	if n == nil || v.name("aB") == "aB" {
		return nil
	}
	written := []string{v.Keys[variable].Value}
	for _, element := range path {
		key := element
		for at := range properties(n) {
			if v.name(at.Value) == element {
				key = at.Value
			}
		}
		if n, _, _ = Find(n, []string{element}, v.name); n == nil {
			return nil
		}
		written = append(written, key)
	}
	return freeBelow(n, written)
}

func freeBelow(n *yaml.Node, path []string) []string {
	const deepest = 10
	if n == nil || len(path) > deepest {
		return nil
	}
	if Type(n) == "object" && Open(n) {
		return path
	}
	if items := source.Field(n, "items"); items != nil {
		return freeBelow(items, append(slices.Clone(path), "[]"))
	}
	for key, field := range properties(n) {
		if found := freeBelow(field, append(slices.Clone(path), key.Value)); found != nil {
			return found
		}
	}
	return nil
}

// Probe returns an object with all fields of the schema of the spec, at each depth, at the lines of the schema.
func (v Variables) Probe() *yaml.Node {
	spec := probe(specOf(v.root), 0)
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: "spec"}, spec}}
}

func probe(n *yaml.Node, depth int) *yaml.Node {
	const deepest = 20 // Aliases may lead round in a circle.
	items := source.Field(n, "items")
	switch {
	case depth > deepest:
	case source.Field(n, "properties") != nil:
		object := &yaml.Node{Kind: yaml.MappingNode}
		for key, field := range properties(n) {
			name := *key
			name.Tag = "!!str"
			object.Content = append(object.Content, &name, probe(field, depth+1))
		}
		return object
	case items != nil:
		return &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{probe(items, depth+1)}}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "x"}
}

// Package schema reads the CRDs of a project, with the lines of their
// files, and tells which variables the spec of a watched kind can become.
package schema

import (
	"iter"
	"regexp/syntax"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/watches"
)

// CRD is a CustomResourceDefinition in a file.
type CRD struct {
	File                string
	Line                int
	Group, Kind, Plural string
	Singular            string
	ShortNames          []string
	Namespaced          bool
	versions            *yaml.Node
}

// Version is a version of a CRD.
type Version struct {
	Line           int
	Served, Status bool
	// Root is the schema of the whole object; nil if there is none.
	Root *yaml.Node
}

// Load returns the CRDs in the YAML files below dir. A file that is not YAML has none.
func Load(dir string) []CRD {
	var found []CRD
	for _, path := range source.Below(dir, ".yaml", ".yml") {
		documents, _ := source.ReadYAML(path)
		for _, document := range documents {
			if crd, ok := Parse(path, document); ok {
				found = append(found, crd)
			}
		}
	}
	return found
}

// Of finds the CRD of a kind; nil if there is none.
func Of(crds []CRD, kind schema.GroupKind) *CRD {
	for i := range crds {
		if crds[i].Group == kind.Group && crds[i].Kind == kind.Kind {
			return &crds[i]
		}
	}
	return nil
}

// Parse returns the CRD in a document of a file; ok is false if the document is another object.
func Parse(path string, n *yaml.Node) (crd CRD, ok bool) {
	spec := source.Field(n, "spec")
	crd = CRD{
		File: path, Line: n.Line, Group: source.Scalar(spec, "group"), Kind: source.Scalar(spec, "names", "kind"), Plural: source.Scalar(spec, "names", "plural"),
		Singular: source.Scalar(spec, "names", "singular"), Namespaced: source.Scalar(spec, "scope") != "Cluster", versions: source.Field(spec, "versions"),
	}
	for _, name := range source.Items(source.Field(spec, "names", "shortNames")) {
		crd.ShortNames = append(crd.ShortNames, name.Value)
	}
	return crd, source.Scalar(n, "kind") == "CustomResourceDefinition"
}

// Version returns a version, nil if there is no CRD, or it has none of that name.
func (c *CRD) Version(name string) *Version {
	if c == nil {
		return nil
	}
	for _, v := range source.Items(c.versions) {
		if source.Scalar(v, "name") == name {
			return &Version{
				Line: v.Line, Served: source.Scalar(v, "served") == "true", Status: source.Field(v, "subresources", "status") != nil,
				Root: source.Field(v, "schema", "openAPIV3Schema"),
			}
		}
	}
	return nil
}

// Open reports whether an object of the schema may have fields that the schema does not name.
func Open(n *yaml.Node) bool {
	if n == nil {
		return true
	}
	additional := source.Field(n, "additionalProperties")
	return source.Scalar(n, "x-kubernetes-preserve-unknown-fields") == "true" || additional != nil && additional.Value != "false"
}

// opening returns the key that opens a schema, or the schema itself.
func opening(n *yaml.Node) *yaml.Node {
	for key := range source.Pairs(n) {
		if key.Value == "x-kubernetes-preserve-unknown-fields" || key.Value == "additionalProperties" {
			return key
		}
	}
	return n
}

// Find returns the schema at a path of field names and "[]" or "[*]" for elements. found is
// false if the schema has no such field; then open says that objects may have it anyway.
func Find(n *yaml.Node, path []string, name func(string) string) (at *yaml.Node, found, open bool) {
	for _, element := range path {
		if n == nil {
			return nil, false, true
		}
		next := source.Field(n, "items")
		if element != "[]" && element != watches.EachElement || next == nil {
			next = property(n, element, name)
		}
		if next == nil {
			if additional := source.Field(n, "additionalProperties"); additional != nil && additional.Kind == yaml.MappingNode {
				next = additional
			}
		}
		if next == nil {
			return nil, false, Open(n)
		}
		n = next
	}
	return n, true, Open(n)
}

func property(n *yaml.Node, key string, name func(string) string) *yaml.Node {
	for at, value := range properties(n) {
		if name(at.Value) == key {
			return value
		}
	}
	return nil
}

// Snake returns the name of a variable for a key of a spec.
func Snake(key string) string {
	if name, err := extravars.SnakeCase(key); err == nil {
		return name
	}
	return key
}

// Same returns the key.
func Same(key string) string { return key }

// Type returns the type that the schema gives, "" if it gives none.
func Type(n *yaml.Node) string { return source.Scalar(n, "type") }

// Restricted reports whether the schema lets no text through that could mean more than itself:
// values of other types, of an enumeration, or of a narrow pattern.
func Restricted(n *yaml.Node) bool {
	if n == nil {
		return false
	}
	switch Type(n) {
	case "integer", "number", "boolean":
		return true
	case "string":
		pattern := source.Scalar(n, "pattern")
		narrow := strings.HasPrefix(pattern, "^") && strings.HasSuffix(pattern, "$") && !takesAnything(pattern) &&
			!slices.ContainsFunc([]string{".*", ".+", `\s`, "[^", `\S`, `\W`, `\D`, "|"}, func(s string) bool { return strings.Contains(pattern, s) })
		return source.Field(n, "enum") != nil || narrow || slices.Contains([]string{"date-time", "date", "uuid", "ipv4", "ipv6", "cidr", "byte", "hostname"}, source.Scalar(n, "format"))
	}
	return false
}

// takesAnything reports whether a part of the pattern matches any character, or is not known.
func takesAnything(pattern string) bool {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	return err != nil || hasAny(parsed)
}

func hasAny(r *syntax.Regexp) bool {
	return r.Op == syntax.OpAnyChar || r.Op == syntax.OpAnyCharNotNL || slices.ContainsFunc(r.Sub, hasAny)
}

// properties yields the names and the schemas of the fields of an object.
func properties(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return source.Pairs(source.Field(n, "properties"))
}

// specOf returns the schema of the spec in that of the whole object.
func specOf(root *yaml.Node) *yaml.Node { return source.Field(root, "properties", "spec") }

// Package schema reads the CRDs of a project, with the lines of their
// files, and tells which variables the spec of a watched kind can become.
package schema

import (
	"io/fs"
	"path/filepath"
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
	var paths []string
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error { // A missing directory has none.
		if err == nil && !entry.IsDir() && (filepath.Ext(path) == ".yaml" || filepath.Ext(path) == ".yml") {
			paths = append(paths, path)
		}
		return nil
	})
	var found []CRD
	for _, path := range paths {
		documents, _ := source.ReadYAML(path)
		for _, document := range documents {
			if crd, ok := parse(path, document); ok {
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

func parse(path string, n *yaml.Node) (CRD, bool) {
	if text(n, "kind") != "CustomResourceDefinition" {
		return CRD{}, false
	}
	spec := field(n, "spec")
	names := field(spec, "names")
	var shortNames []string
	if list := field(names, "shortNames"); list != nil {
		for _, name := range list.Content {
			shortNames = append(shortNames, name.Value)
		}
	}
	return CRD{
		File: path, Line: n.Line, Group: text(spec, "group"), Kind: text(names, "kind"), Plural: text(names, "plural"),
		Singular: text(names, "singular"), ShortNames: shortNames,
		Namespaced: text(spec, "scope") != "Cluster", versions: field(spec, "versions"),
	}, true
}

// Version returns a version, nil if the CRD has none of that name.
func (c CRD) Version(name string) *Version {
	if c.versions == nil {
		return nil
	}
	for _, v := range c.versions.Content {
		if text(v, "name") == name {
			return &Version{
				Line: v.Line, Served: text(v, "served") == "true", Status: field(field(v, "subresources"), "status") != nil,
				Root: field(field(v, "schema"), "openAPIV3Schema"),
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
	additional := field(n, "additionalProperties")
	return text(n, "x-kubernetes-preserve-unknown-fields") == "true" || additional != nil && additional.Value != "false"
}

// opening returns the key that opens a schema, or the schema itself.
func opening(n *yaml.Node) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; key.Value == "x-kubernetes-preserve-unknown-fields" || key.Value == "additionalProperties" {
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
		next := field(n, "items")
		if element != "[]" && element != watches.EachElement || next == nil {
			next = property(n, element, name)
		}
		if next == nil {
			if additional := field(n, "additionalProperties"); additional != nil && additional.Kind == yaml.MappingNode {
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
	properties := field(n, "properties")
	if properties == nil {
		return nil
	}
	for i := 0; i+1 < len(properties.Content); i += 2 {
		if name(properties.Content[i].Value) == key {
			return properties.Content[i+1]
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
func Type(n *yaml.Node) string { return text(n, "type") }

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
		pattern := text(n, "pattern")
		narrow := strings.HasPrefix(pattern, "^") && strings.HasSuffix(pattern, "$") && !takesAnything(pattern) &&
			!slices.ContainsFunc([]string{".*", ".+", `\s`, "[^", `\S`, `\W`, `\D`, "|"}, func(s string) bool { return strings.Contains(pattern, s) })
		return field(n, "enum") != nil || narrow || slices.Contains([]string{"date-time", "date", "uuid", "ipv4", "ipv6", "cidr", "byte", "hostname"}, text(n, "format"))
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

func field(n *yaml.Node, key string) *yaml.Node { return source.Field(n, key) }

func text(n *yaml.Node, key string) string { return source.Scalar(field(n, key)) }

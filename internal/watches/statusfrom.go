package watches

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/client-go/util/jsonpath"
)

// namePlaceholder stands for the name of the custom resource in the name of a child.
const namePlaceholder = "{name}"

// ChildField is a field of a child, which the status of the CR shows.
type ChildField struct {
	// Kind and Name are those of the child, in the CR's namespace or without one.
	Kind, Name string
	// Path is a JSONPath in braces, as in kubectl: {.status.readyReplicas}.
	Path string
}

// NameFor returns the child's name for the CR with a name.
func (f ChildField) NameFor(cr string) string { return strings.ReplaceAll(f.Name, namePlaceholder, cr) }

// isManagers reports whether the manager itself writes a key of the status.
func isManagers(key string) bool {
	return slices.Contains([]string{"conditions", "observedGeneration", "contentDigest", "contentRun", "reconcileRequestedAt", "deployedRelease", "attemptedRelease"}, key)
}

// statusFrom returns the parser of statusFrom: keys of the status with the fields of children that they show.
func (p *parser) statusFrom(d *rawWatch) fieldParser {
	return func(field string, n *yaml.Node) {
		m := followAlias(n)
		if m.Kind != yaml.MappingNode {
			p.invalidValue(field, n, "a mapping such as readyReplicas: {from: Deployment/web, path: .status.readyReplicas}")
			return
		}
		d.StatusFrom = map[string]ChildField{}
		for _, f := range p.mappingFields(m) {
			var from, path textField
			p.mapping("a field of a child", map[string]fieldParser{"from": p.text(&from), "path": p.text(&path)})(field+"."+f.key, f.value)
			child, fault := childField(f.key, from.text, path.text)
			if fault != "" {
				p.addFault(f.line, "statusFrom.%s: %s", f.key, fault)
				continue
			}
			d.StatusFrom[f.key] = child
		}
	}
}

// childField returns the field of a child that a key of the status shows, or the fault of the setting.
func childField(key, from, path string) (child ChildField, fault string) {
	kind, name, both := strings.Cut(from, "/")
	child = ChildField{Kind: kind, Name: name, Path: "{" + path + "}"}
	switch {
	case isManagers(key) || key == "" || strings.ContainsAny(key, "/~"):
		return child, "the name is invalid, or the manager itself writes this field of the status; choose another name"
	case !both || kind == "" || name == "" || strings.Contains(name, "/"):
		return child, fmt.Sprintf("from is %q; write kind and name of a child, such as Deployment/web or Deployment/%s-web", from, namePlaceholder)
	case kind == "Secret":
		return child, "a status must not show fields of a Secret; write another kind"
	case !strings.HasPrefix(path, ".") || strings.ContainsAny(path, "{}*") || strings.Contains(path, "..") || jsonpath.New("").Parse(child.Path) != nil:
		return child, fmt.Sprintf("path is %q; write the JSONPath of one field, such as .status.readyReplicas", path)
	}
	return child, ""
}

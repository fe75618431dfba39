package watches

import (
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
			kind, name, both := strings.Cut(from.text, "/")
			child := ChildField{Kind: kind, Name: name, Path: "{" + path.text + "}"}
			switch {
			case isManagers(f.key) || f.key == "" || strings.ContainsAny(f.key, "/~"):
				p.addFault(f.line, "statusFrom: the manager writes the field %q of the status itself, or it is not a name; write another one", f.key)
			case !both || kind == "" || name == "" || strings.Contains(name, "/"):
				p.addFault(f.line, "statusFrom.%s: from is %q; write kind and name of a child, such as Deployment/web or Deployment/%s-web", f.key, from.text, namePlaceholder)
			case kind == "Secret":
				p.addFault(f.line, "statusFrom.%s: a status shows nothing of a Secret; write another kind", f.key)
			case !strings.HasPrefix(path.text, ".") || strings.ContainsAny(path.text, "{}*") || strings.Contains(path.text, "..") || jsonpath.New("").Parse(child.Path) != nil:
				p.addFault(f.line, "statusFrom.%s: path is %q; write the JSONPath of one field, such as .status.readyReplicas", f.key, path.text)
			default:
				d.StatusFrom[f.key] = child
			}
		}
	}
}

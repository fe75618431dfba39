package watches

import (
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Path is the path to strings in a CR: names of fields, and EachElement.
type Path []string

// EachElement in a Path stands for all elements of a list.
const EachElement = "[*]"

// Lookup returns the strings at the path, in their order. It leaves out values that are absent,
// empty or not a string.
func (p Path) Lookup(object map[string]any) []string { return nonEmptyStrings(p.collect(object, nil)) }

// collect appends the values at the path to found.
func (p Path) collect(value any, found []any) []any {
	if len(p) == 0 {
		return append(found, value)
	}
	if p[0] != EachElement {
		fields, _ := value.(map[string]any)
		return p[1:].collect(fields[p[0]], found)
	}
	elements, _ := value.([]any)
	for _, element := range elements {
		found = p[1:].collect(element, found)
	}
	return found
}

func nonEmptyStrings(values []any) []string {
	var found []string
	for _, value := range values {
		if text, ok := value.(string); ok && text != "" {
			found = append(found, text)
		}
	}
	return found
}

// Resolve returns the names of the objects to which the CR refers, in their order. If
// both paths go through the same list, the name and the namespace come from the same
// element. An object without a namespace is in the CR's.
func (r Reference) Resolve(cr map[string]any) []types.NamespacedName {
	if r.Fixed != "" || r.OfListedKind {
		return r.resolveInNamespace(cr)
	}
	common := 0
	for common < min(len(r.Name), len(r.Namespace)) && r.Name[common] == r.Namespace[common] {
		common++
	}
	crNamespace, _, _ := unstructured.NestedString(cr, "metadata", "namespace")
	var found []types.NamespacedName
	for _, part := range r.Name[:common].collect(cr, nil) {
		namespaces := []string{crNamespace}
		if r.Namespace != nil {
			if given := nonEmptyStrings(r.Namespace[common:].collect(part, nil)); given != nil {
				namespaces = given
			}
		}
		for _, name := range nonEmptyStrings(r.Name[common:].collect(part, nil)) {
			for _, namespace := range namespaces {
				found = append(found, types.NamespacedName{Namespace: namespace, Name: name})
			}
		}
	}
	return found
}

// resolveInNamespace returns the objects of a reference that valuesFrom makes. They are in the
// CR's namespace.
func (r Reference) resolveInNamespace(cr map[string]any) (found []types.NamespacedName) {
	namespace, _, _ := unstructured.NestedString(cr, "metadata", "namespace")
	names := []string{r.Fixed}
	if r.OfListedKind {
		names = nil
		for _, element := range r.Name[:len(r.Name)-1].collect(cr, nil) {
			if fields, _ := element.(map[string]any); fields["kind"] == r.GVK.Kind {
				names = append(names, r.Name[len(r.Name)-1:].Lookup(fields)...)
			}
		}
	}
	for _, name := range names {
		if namespace != "" {
			found = append(found, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return found
}

func (p Path) String() string {
	return strings.ReplaceAll(strings.Join(p, "."), "."+EachElement, EachElement)
}

// parsePath parses a path such as spec.users[*].secret. It returns nil if the text is no
// path.
func parsePath(text string) Path {
	var path Path
	for field := range strings.SplitSeq(text, ".") {
		name, lists := field, 0
		for strings.HasSuffix(name, EachElement) {
			name, lists = strings.TrimSuffix(name, EachElement), lists+1
		}
		if name == "" || strings.ContainsAny(name, "[]{}$*'\" ") {
			return nil
		}
		path = append(path, name)
		for range lists {
			path = append(path, EachElement)
		}
	}
	return path
}

// rawKind holds the fields of a kind in blacklist or references.
type rawKind struct {
	group, version, kind textField
}

func (k *rawKind) parsers(p *parser) map[string]fieldParser {
	return map[string]fieldParser{"group": p.text(&k.group), "version": p.text(&k.version), "kind": p.text(&k.kind)}
}

// validate reports whether an API server could serve the kind, and adds faults if not.
func (k *rawKind) validate(p *parser, line int) bool {
	before := len(p.faults)
	p.required("kind", k.kind, line, "Secret")
	p.validName("group", k.group, validation.IsDNS1123Subdomain(k.group.text), "an API group such as apps, without the version")
	p.validName("version", k.version, validation.IsDNS1035Label(k.version.text), "an API version such as v1, without the group")
	p.validName("kind", k.kind, validation.IsDNS1035Label(strings.ToLower(k.kind.text)), "a kind such as Secret: letters and digits")
	return len(p.faults) == before && k.kind.text != ""
}

// blacklisted returns the parser of an element of blacklist. The version is ignored: a
// kind's objects are the same in every version.
func (p *parser) blacklisted(d *rawWatch) fieldParser {
	return func(field string, n *yaml.Node) {
		var k rawKind
		p.mapping("a kind", k.parsers(p))(field, n)
		if followAlias(n).Kind == yaml.MappingNode && k.validate(p, n.Line) {
			d.Blacklist = append(d.Blacklist, schema.GroupKind{Group: k.group.text, Kind: k.kind.text})
		}
	}
}

func (p *parser) reference(d *rawWatch) fieldParser {
	return func(field string, n *yaml.Node) {
		var k rawKind
		var name, namespace textField
		fields := k.parsers(p)
		var status []string
		fields["name"], fields["namespace"] = p.text(&name), p.text(&namespace)
		fields["statusFields"] = p.list(p.statusField(&status))
		p.mapping("a reference", fields)(field, n)
		if followAlias(n).Kind != yaml.MappingNode {
			return
		}
		before := len(p.faults)
		p.required("version", k.version, n.Line, "v1")
		p.required("name", name, n.Line, "spec.passwordSecret, a path into the resource")
		reference := Reference{Name: p.parsePathField("name", name), Namespace: p.parsePathField("namespace", namespace), StatusFields: status}
		if k.validate(p, n.Line) && len(p.faults) == before {
			reference.GVK = schema.GroupVersionKind{Group: k.group.text, Version: k.version.text, Kind: k.kind.text}
			d.References = append(d.References, reference)
		}
	}
}

// statusField returns the parser of an element of statusFields.
func (p *parser) statusField(into *[]string) fieldParser {
	return func(field string, n *yaml.Node) {
		var name textField
		p.text(&name)(field, n)
		if path := parsePath(name.text); !name.reported && len(path) != 1 {
			p.addFault(n.Line, "%s: %q is not a field; write the name of a field at the top of the object's status, such as ready", field, name.text)
			return
		}
		*into = append(*into, name.text)
	}
}

func (p *parser) parsePathField(field string, text textField) Path {
	if text.text == "" {
		return nil
	}
	path := parsePath(text.text)
	if path == nil {
		p.addFault(text.line, "%s: %q is not a path; write the fields that lead to the name in the resource, such as spec.passwordSecret or spec.users[*].secret", field, text.text)
	}
	return path
}

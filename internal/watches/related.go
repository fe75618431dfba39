package watches

import (
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Path leads to a text in a CR, field by field. Each stands for all elements of a
// list.
type Path []string

// Each is the element of a Path that is no field.
const Each = "[*]"

// In returns the texts to which the path leads, in their order. What is absent,
// empty or no text is left out.
func (p Path) In(object map[string]any) []string { return texts(p.values(object, nil)) }

// values adds what the path leads to.
func (p Path) values(value any, found []any) []any {
	if len(p) == 0 {
		return append(found, value)
	}
	if p[0] != Each {
		fields, _ := value.(map[string]any)
		return p[1:].values(fields[p[0]], found)
	}
	elements, _ := value.([]any)
	for _, element := range elements {
		found = p[1:].values(element, found)
	}
	return found
}

func texts(values []any) []string {
	var found []string
	for _, value := range values {
		if text, ok := value.(string); ok && text != "" {
			found = append(found, text)
		}
	}
	return found
}

// In returns the objects that a CR names, in their order. Where both paths go
// through one list, name and namespace are those of one element; where there is
// no namespace it is the CR's.
func (r Reference) In(cr map[string]any) []types.NamespacedName {
	common := 0
	for common < min(len(r.Name), len(r.Namespace)) && r.Name[common] == r.Namespace[common] {
		common++
	}
	own, _, _ := unstructured.NestedString(cr, "metadata", "namespace")
	var found []types.NamespacedName
	for _, part := range r.Name[:common].values(cr, nil) {
		namespaces := []string{own}
		if r.Namespace != nil {
			if given := texts(r.Namespace[common:].values(part, nil)); given != nil {
				namespaces = given
			}
		}
		for _, name := range texts(r.Name[common:].values(part, nil)) {
			for _, namespace := range namespaces {
				found = append(found, types.NamespacedName{Namespace: namespace, Name: name})
			}
		}
	}
	return found
}

func (p Path) String() string { return strings.ReplaceAll(strings.Join(p, "."), "."+Each, Each) }

// parsePath reads a path such as spec.users[*].secret. It is nil for a text that
// is none.
func parsePath(text string) Path {
	var path Path
	for field := range strings.SplitSeq(text, ".") {
		name, lists := field, 0
		for strings.HasSuffix(name, Each) {
			name, lists = strings.TrimSuffix(name, Each), lists+1
		}
		if name == "" || strings.ContainsAny(name, "[]{}$*'\" ") {
			return nil
		}
		path = append(path, name)
		for range lists {
			path = append(path, Each)
		}
	}
	return path
}

// kindDraft is a kind that is not the watch's own.
type kindDraft struct {
	group, version, kind located
}

func (k *kindDraft) fields(r *reader) map[string]setter {
	return map[string]setter{"group": r.text(&k.group), "version": r.text(&k.version), "kind": r.text(&k.kind)}
}

// check is true for a kind that an API server may serve.
func (k *kindDraft) check(r *reader, line int) bool {
	before := len(r.faults)
	r.required("kind", k.kind, line, "Secret")
	r.named("group", k.group, validation.IsDNS1123Subdomain(k.group.text), "an API group such as apps, without the version")
	r.named("version", k.version, validation.IsDNS1035Label(k.version.text), "an API version such as v1, without the group")
	r.named("kind", k.kind, validation.IsDNS1035Label(strings.ToLower(k.kind.text)), "a kind such as Secret: letters and digits")
	return len(r.faults) == before && k.kind.text != ""
}

// blacklisted reads a child kind that is left alone. Its version is of no
// importance: the objects are the same in every one.
func (r *reader) blacklisted(d *draft) setter {
	return func(field string, n *yaml.Node) {
		var k kindDraft
		r.mapping("a kind", k.fields(r))(field, n)
		if resolved(n).Kind == yaml.MappingNode && k.check(r, n.Line) {
			d.Blacklist = append(d.Blacklist, schema.GroupKind{Group: k.group.text, Kind: k.kind.text})
		}
	}
}

func (r *reader) reference(d *draft) setter {
	return func(field string, n *yaml.Node) {
		var k kindDraft
		var name, namespace located
		fields := k.fields(r)
		fields["name"], fields["namespace"] = r.text(&name), r.text(&namespace)
		r.mapping("a reference", fields)(field, n)
		if resolved(n).Kind != yaml.MappingNode {
			return
		}
		before := len(r.faults)
		r.required("version", k.version, n.Line, "v1")
		r.required("name", name, n.Line, "spec.passwordSecret, a path into the resource")
		reference := Reference{Name: r.path("name", name), Namespace: r.path("namespace", namespace)}
		if k.check(r, n.Line) && len(r.faults) == before {
			reference.GVK = schema.GroupVersionKind{Group: k.group.text, Version: k.version.text, Kind: k.kind.text}
			d.References = append(d.References, reference)
		}
	}
}

func (r *reader) path(field string, text located) Path {
	if text.text == "" {
		return nil
	}
	path := parsePath(text.text)
	if path == nil {
		r.fault(text.line, "%s: %q is no path; write the fields that lead to the name in the resource, such as spec.passwordSecret or spec.users[*].secret", field, text.text)
	}
	return path
}

package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Field is a field of an object that the schema of its kind does not have.
type Field struct {
	// Path is as the API server writes it: spec.users[0].nam.
	Path string
	// Name is the last part of the path, and Known are the names that the schema has there.
	Name  string
	Known []string
}

// Dropped returns those fields of an object that the schema of its kind does not have. The API
// server drops them from what it stores and returns, and refuses them where a client asks for
// strict validation. The fields within a dropped field are not listed.
func Dropped(root *yaml.Node, object map[string]any) []Field {
	return droppedBelow(root, object, "", true)
}

// droppedBelow returns the fields below a path. A resource is an object with a kind and metadata
// of its own, which the schema need not have.
func droppedBelow(n *yaml.Node, value any, path string, resource bool) (fields []Field) {
	if n == nil {
		return nil // Not a schema that the API server takes, or one that says nothing of the value.
	}
	switch value := value.(type) {
	case []any:
		for i, element := range value {
			items := field(n, "items")
			fields = append(fields, droppedBelow(items, element, fmt.Sprintf("%s[%d]", path, i), text(items, embedded) == "true")...)
		}
	case map[string]any:
		properties, additional := field(n, "properties"), field(n, "additionalProperties")
		for _, key := range slices.Sorted(maps.Keys(value)) {
			at := strings.TrimPrefix(path+"."+key, ".")
			switch property := field(properties, key); {
			case resource && slices.Contains([]string{"apiVersion", "kind", "metadata"}, key):
			case property != nil:
				fields = append(fields, droppedBelow(property, value[key], at, text(property, embedded) == "true")...)
			case additional != nil && additional.Kind == yaml.MappingNode:
				fields = append(fields, droppedBelow(additional, value[key], at, text(additional, embedded) == "true")...)
			case !Open(n):
				fields = append(fields, Field{Path: at, Name: key, Known: names(properties)})
			}
		}
	}
	return fields
}

// embedded marks the schema of an object that has a kind and metadata of its own.
const embedded = "x-kubernetes-embedded-resource"

func names(properties *yaml.Node) (all []string) {
	if properties != nil {
		for i := 0; i+1 < len(properties.Content); i += 2 {
			all = append(all, properties.Content[i].Value)
		}
	}
	return all
}

// Of returns the schema that the CRDs have for the objects of a kind; nil if they have none.
func Of(gvk schema.GroupVersionKind, crds []CRD) *yaml.Node {
	for _, crd := range crds {
		if crd.Group == gvk.Group && crd.Kind == gvk.Kind {
			if version := crd.Version(gvk.Version); version != nil {
				return version.Root
			}
		}
	}
	return nil
}

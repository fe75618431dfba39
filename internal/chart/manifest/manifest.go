// Package manifest reads the manifests of releases: YAML documents, of which each is an object or
// a list of objects.
//
// A chart renders text of CRs, so a manifest may hold anything. The package bounds its input, and
// knows no release.
package manifest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/ensign-operator/ensign/internal/boundedyaml"
)

// Parse returns the objects of a manifest. Like Helm, it takes each object with items for a list, and
// returns the items.
func Parse(manifest string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		object := map[string]any{}
		var text []byte
		if err == nil {
			text, err = boundedyaml.ToJSON(document)
		}
		if err == nil {
			err = utiljson.Unmarshal(text, &object) // It keeps whole numbers whole.
		}
		if err != nil {
			return nil, fmt.Errorf("read the manifest of the release: %w", err)
		}
		objects = append(objects, flatten(object)...)
	}
}

// flatten returns the object, or the items of a list such as a List or a ConfigMapList.
func flatten(object map[string]any) []*unstructured.Unstructured {
	items, isList := object["items"].([]any)
	one := &unstructured.Unstructured{Object: object}
	switch {
	case len(object) == 0:
		return nil
	case !isList:
		return []*unstructured.Unstructured{one}
	}
	var all []*unstructured.Unstructured
	for _, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			continue // Helm has refused it.
		}
		if fields["kind"] == nil && fields["apiVersion"] == nil { // A typed list says it for its items.
			fields["kind"], fields["apiVersion"] = strings.TrimSuffix(one.GetKind(), "List"), one.GetAPIVersion()
		}
		all = append(all, flatten(fields)...)
	}
	return all
}

// Identity returns a manifest with only the kind, namespace and name of an object.
func Identity(object *unstructured.Unstructured) string {
	text := fmt.Sprintf("---\napiVersion: %q\nkind: %q\nmetadata:\n  name: %q\n", object.GetAPIVersion(), object.GetKind(), object.GetName())
	if namespace := object.GetNamespace(); namespace != "" {
		text += fmt.Sprintf("  namespace: %q\n", namespace)
	}
	return text
}

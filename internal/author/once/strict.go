package once

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/nearest"
)

// unknownField matches the fields that the API server names when it validates strictly.
var unknownField = regexp.MustCompile(`unknown field "([^"]+)"`)

// unknownFields returns the paths of the fields for which the API server has refused an object.
func unknownFields(err error) (paths []string) {
	if !apierrors.IsBadRequest(err) {
		return nil
	}
	for _, match := range unknownField.FindAllStringSubmatch(err.Error(), -1) {
		paths = append(paths, match[1])
	}
	return paths
}

// undefined returns an error with the fields of the file's CR that the project's definition of its
// kind does not have; nil where there is no definition.
func (r *reader) undefined(cr *unstructured.Unstructured) error {
	var paths []string
	for _, field := range schema.Dropped(schema.Of(cr.GroupVersionKind(), r.definitions()), cr.Object) {
		paths = append(paths, field.Path)
	}
	return r.refuse(cr, paths)
}

// definitions returns the CRDs of the project, which is in the working directory.
func (r *reader) definitions() []schema.CRD { return schema.Load("config") }

// refuse returns an error that names the fields that the kind of the CR does not have, with their
// lines and what to do; nil if there are none.
func (r *reader) refuse(cr *unstructured.Unstructured, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	root := schema.Of(cr.GroupVersionKind(), r.definitions())
	ours, document := schema.Dropped(root, cr.Object), r.document(cr)
	var errs []error
	for _, path := range paths {
		remedy := "correct or remove it"
		index := slices.IndexFunc(ours, func(f schema.Field) bool { return f.Path == path })
		switch {
		case index >= 0:
			if meant, ok := nearest.Of(ours[index].Name, ours[index].Known); ok {
				remedy = fmt.Sprintf("did you mean %s?", meant)
			}
		case root != nil && !strings.HasPrefix(path, "metadata."):
			remedy = "the project's CRD has it: install that first (make install)"
		}
		place := r.options.File
		if line := lineOfField(document, path); line > 0 {
			place = fmt.Sprintf("%s:%d", place, line)
		}
		errs = append(errs, fmt.Errorf("%s: %s: the kind %s does not have this field; %s", place, path, cr.GetKind(), remedy))
	}
	return errors.Join(errs...)
}

// document returns the document of the file that has the CR; nil if it cannot be found again.
func (r *reader) document(cr *unstructured.Unstructured) *yaml.Node {
	text, err := contentOf(r.options)
	if err != nil {
		return nil
	}
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document yaml.Node
		if decoder.Decode(&document) != nil {
			return nil
		}
		var object struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string `yaml:"kind"`
		}
		if document.Decode(&object) == nil && object.APIVersion == cr.GetAPIVersion() && object.Kind == cr.GetKind() {
			return document.Content[0]
		}
	}
}

// lineOfField returns the line of a field below a node; 0 if it is not there. Keys may have dots.
func lineOfField(n *yaml.Node, path string) int {
	switch {
	case n == nil:
	case n.Kind == yaml.AliasNode:
		return lineOfField(n.Alias, path)
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			rest, begins := strings.CutPrefix(path, n.Content[i].Value)
			switch {
			case begins && rest == "":
				return n.Content[i].Line
			case begins && (rest[0] == '.' || rest[0] == '['):
				if line := lineOfField(n.Content[i+1], strings.TrimPrefix(rest, ".")); line > 0 {
					return line
				}
			}
		}
	case n.Kind == yaml.SequenceNode:
		for i, element := range n.Content {
			if rest, begins := strings.CutPrefix(path, fmt.Sprintf("[%d]", i)); begins {
				return lineOfField(element, strings.TrimPrefix(rest, "."))
			}
		}
	}
	return 0
}

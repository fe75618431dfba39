package once

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
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
	fields, _ := dropped(cr)
	for _, field := range fields {
		paths = append(paths, field.Path)
	}
	return r.refuse(cr, paths)
}

// dropped returns the fields of a CR that the CRD of the project, which is in the working directory, does not have.
// known is false where no CRD tells.
func dropped(cr *unstructured.Unstructured) (fields []schema.Problem, known bool) {
	gvk := cr.GroupVersionKind()
	validator, err := schema.Of(schema.Load("config"), gvk.GroupKind()).Validator(gvk.Version)
	if err != nil || validator == nil {
		return nil, false
	}
	return validator.Dropped(cr.DeepCopy().Object), true
}

// refuse returns an error that names the fields that the kind of the CR does not have, with their
// lines and what to do; nil if there are none.
func (r *reader) refuse(cr *unstructured.Unstructured, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	ours, known := dropped(cr)
	document := r.document(cr)
	var errs []error
	for _, path := range paths {
		remedy := "correct or remove it"
		switch index := slices.IndexFunc(ours, func(f schema.Problem) bool { return f.Path == path }); {
		case index >= 0:
			if _, meant, ok := strings.Cut(ours[index].Message, "; did you mean "); ok {
				remedy = "did you mean " + meant
			}
		case known && !strings.HasPrefix(path, "metadata."):
			remedy = "the project's CRD has it: install that first (make install)"
		}
		place := r.options.File
		if document != nil {
			place = fmt.Sprintf("%s:%d", place, source.At(document, path).Line)
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
	documents, _ := source.Parse(r.options.File, text)
	for _, document := range documents {
		if source.Scalar(document, "apiVersion") == cr.GetAPIVersion() && source.Scalar(document, "kind") == cr.GetKind() {
			return document
		}
	}
	return nil
}

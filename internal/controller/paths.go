package controller

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/ensign-operator/ensign/internal/watches"
)

// warnOfPaths logs the paths of references that lead nowhere in any object of the kind,
// as far as its schema says. A new kind is served before its schema is.
func (s *Supervisor) warnOfPaths(ctx context.Context, references []watches.Reference) {
	if s.OpenAPI == nil || len(references) == 0 {
		return
	}
	var document *spec3.OpenAPI
	published := func(context.Context) (bool, error) {
		var err error
		document, err = s.OpenAPI(s.GVK.GroupVersion())
		return err == nil && schemaOf(document, s.GVK) != nil, nil
	}
	if wait.PollUntilContextTimeout(ctx, 2*time.Second, time.Minute, true, published) != nil {
		s.Logger.V(1).Info("the paths of references are not checked: the kind's schema can't be read", "gvk", s.GVK.String())
		return
	}
	for _, reference := range references {
		for _, path := range []watches.Path{reference.Name, reference.Namespace} {
			if field := unknownField(document, s.GVK, path); field != "" {
				s.Logger.Info("WARNING: a path of references leads to a field that the kind's schema does not have", "gvk", s.GVK.String(), "path", path.String(), "field", field)
			}
		}
	}
}

// unknownField returns the beginning of the path up to the first field that the kind's
// schema does not have; "" if all fields of the path may exist.
func unknownField(document *spec3.OpenAPI, gvk schema.GroupVersionKind, path watches.Path) string {
	at := schemaOf(document, gvk)
	for i, field := range path {
		at = resolved(document, at)
		if at == nil {
			return ""
		}
		next, absent := fieldSchema(at, field)
		if absent {
			return path[:i+1].String()
		}
		at = next
	}
	return ""
}

// fieldSchema returns the schema of a field, or of a list's elements: nil if nothing is known
// of it. absent is true if the schema excludes the field.
func fieldSchema(at *spec.Schema, field string) (next *spec.Schema, absent bool) {
	is := func(extension string) bool { on, _ := at.Extensions.GetBool(extension); return on }
	property, known := at.Properties[field]
	switch {
	case known:
		return &property, false
	case is("x-kubernetes-preserve-unknown-fields"), is("x-kubernetes-embedded-resource"), is("x-kubernetes-int-or-string"):
		return nil, false
	case len(at.Type) == 0:
		return nil, false
	case field == watches.EachElement && at.Items != nil:
		return at.Items.Schema, false
	case field == watches.EachElement:
		return nil, !slices.Contains(at.Type, "array")
	case at.AdditionalProperties != nil:
		return at.AdditionalProperties.Schema, !at.AdditionalProperties.Allows
	default: // An object of which no field is known may have any.
		return nil, len(at.Properties) > 0 || !slices.Contains(at.Type, "object")
	}
}

// schemaOf returns the schema of a kind, nil where the document has none.
func schemaOf(document *spec3.OpenAPI, gvk schema.GroupVersionKind) *spec.Schema {
	if document.Components == nil {
		return nil
	}
	for _, candidate := range document.Components.Schemas {
		kinds, _ := candidate.Extensions["x-kubernetes-group-version-kind"].([]any)
		for _, item := range kinds {
			kind, _ := item.(map[string]any)
			if kind["group"] == gvk.Group && kind["version"] == gvk.Version && kind["kind"] == gvk.Kind {
				return candidate
			}
		}
	}
	return nil
}

// resolved follows a reference to a schema of its own, as that of metadata is.
func resolved(document *spec3.OpenAPI, at *spec.Schema) *spec.Schema {
	for at != nil && len(at.AllOf) == 1 {
		at = &at.AllOf[0]
	}
	if at == nil || at.Ref.String() == "" {
		return at
	}
	return document.Components.Schemas[strings.TrimPrefix(at.Ref.String(), "#/components/schemas/")]
}

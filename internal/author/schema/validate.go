package schema

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	invalid "k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	kyaml "sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/suggest"
)

// Problem is a part of an object that the API server does not take as it is written. Path is such
// as spec.users[0].name.
type Problem struct{ Path, Message string }

// Validator treats objects of a version as the API server does: it drops fields that the schema
// does not name, sets defaults, and compares the rest with the schema and its rules.
type Validator struct {
	structural *schema.Structural
	open       validation.SchemaValidator
	rules      *cel.Validator
}

// Object returns a document as an object with numbers as in an answer of the API server.
func Object(document *yaml.Node) (object map[string]any, err error) {
	text, err := yaml.Marshal(document)
	if err == nil {
		text, err = kyaml.YAMLToJSON(text)
	}
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	return object, err
}

// Validator returns the validator of a version, nil if there is no CRD, or it has no such version or no schema for
// it. The error is the API server's refusal of the CRD itself.
func (c *CRD) Validator(version string) (*Validator, error) {
	v := c.Version(version)
	if v == nil || v.Root == nil {
		return nil, nil //nolint:nilnil // There is none to compare with.
	}
	text, err := yaml.Marshal(v.Root)
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	var written apiextensionsv1.JSONSchemaProps
	if err := kyaml.Unmarshal(text, &written); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&written, &props, nil); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		return nil, fmt.Errorf("the schema is not structural: %w", err)
	}
	if faults := schema.ValidateStructural(nil, structural); len(faults) > 0 {
		return nil, fmt.Errorf("the schema is not structural: %w", faults.ToAggregate())
	}
	open, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	return &Validator{structural: structural, open: open, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// Dropped removes the fields of an object that the schema does not name, and returns them.
func (v *Validator) Dropped(object map[string]any) []Problem {
	var problems []Problem
	options := schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, path := range pruning.PruneWithOptions(object, v.structural, true, options) {
		parent, name := "", path
		if dot := strings.LastIndex(path, "."); dot >= 0 {
			parent, name = path[:dot], path[dot+1:]
		}
		problems = append(problems, Problem{path, "the CRD has no field " + path + suggest.Slip(name, v.names(parent))})
	}
	return problems
}

// names returns the fields that the schema names at a path.
func (v *Validator) names(path string) []string {
	at := v.structural
	for element := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next, named := at.Properties[element]
		switch {
		case named:
			at = &next
		case at.Items != nil:
			at = at.Items
		case at.AdditionalProperties != nil && at.AdditionalProperties.Structural != nil:
			at = at.AdditionalProperties.Structural
		default:
			return nil
		}
	}
	var names []string
	for name := range at.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Complete sets the defaults of the schema.
func (v *Validator) Complete(object map[string]any) {
	defaulting.PruneNonNullableNullsWithoutDefaults(object, v.structural)
	defaulting.Default(object, v.structural)
}

// Problems returns the parts of an object that the schema refuses and, if its values are all known,
// those that its rules refuse.
func (v *Validator) Problems(ctx context.Context, object map[string]any, known bool) []Problem {
	faults := validation.ValidateCustomResource(nil, object, v.open)
	faults = append(faults, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)
	if known && len(faults) == 0 && v.rules != nil {
		broken, _ := v.rules.Validate(ctx, nil, v.structural, object, nil, celconfig.RuntimeCELCostBudget)
		faults = append(faults, broken...)
	}
	var problems []Problem
	for _, fault := range faults {
		problems = append(problems, Problem{fault.Field, words(fault)})
	}
	return problems
}

func words(fault *invalid.Error) string { return strings.TrimPrefix(fault.Error(), "<nil>: ") }

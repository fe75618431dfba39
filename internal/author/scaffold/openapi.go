package scaffold

import (
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/author/source"
)

// object is a schema, or a part of one.
type object = map[string]any

const anything = "x-kubernetes-preserve-unknown-fields"

// structural makes the schema of a kind's spec of a JSON Schema of values. Kubernetes takes only a
// part of JSON Schema: the rest is left out, so that the CRD takes more values than the chart.
// Defaults stay where they are, in the chart: an object that repeats them would keep them when the
// chart gets others.
type structural struct {
	root object
	// left are the keywords that were left out.
	left map[string]bool
}

// The keywords that mean the same to Kubernetes, in every schema.
var sameKeywords = strings.Fields("description enum pattern minimum maximum multipleOf minLength maxLength minItems maxItems minProperties maxProperties") //nolint:gochecknoglobals // A table.

// Other keywords that narrow the accepted values.
var narrowing = strings.Fields("allOf anyOf oneOf not if const dependencies dependentSchemas dependentRequired patternProperties propertyNames contains prefixItems uniqueItems exclusiveMinimum exclusiveMaximum format") //nolint:gochecknoglobals // A table.

// convert returns the schema for the values at this place; values has the chart's own, which a
// spec need not repeat.
func (s *structural) convert(schema any, values any, depth int) object {
	from, _ := s.follow(schema, 0).(object)
	const deepest = 12 // A schema may contain itself.
	if len(from) == 0 || depth > deepest {
		return object{anything: true}
	}
	to := object{}
	for _, keyword := range sameKeywords {
		if value, has := from[keyword]; has {
			to[keyword] = value
		}
	}
	for _, keyword := range narrowing {
		if from[keyword] != nil {
			s.left[keyword] = true
		}
	}
	kind, nullable := typeOf(from)
	if nullable {
		to["nullable"] = true
	}
	switch kind {
	case "object":
		s.object(from, to, values, depth)
	case "array":
		to["type"] = "array"
		to["items"] = s.convert(from["items"], nil, depth+1)
	case "string", "integer", "number", "boolean":
		to["type"] = kind
	default:
		to[anything] = true
	}
	return to
}

func (s *structural) object(from, to object, values any, depth int) {
	to["type"] = "object"
	own, _ := values.(object)
	properties, _ := from["properties"].(object)
	if len(properties) > 0 {
		converted := object{}
		for name, property := range properties {
			converted[name] = s.convert(property, own[name], depth+1)
		}
		to["properties"] = converted
	}
	var required []any
	list, _ := from["required"].([]any)
	for _, name := range list {
		if name, isText := name.(string); isText && own[name] == nil {
			required = append(required, name)
		}
	}
	if required != nil {
		to["required"] = required
	}
	more, isSchema := from["additionalProperties"].(object)
	switch {
	case from["additionalProperties"] == false && len(properties) > 0:
	case isSchema && len(properties) == 0:
		to["additionalProperties"] = s.convert(more, nil, depth+1)
	default:
		to[anything] = true
	}
}

// typeOf returns the one type of a schema, "" if there are several, and whether null is taken.
func typeOf(schema object) (kind string, nullable bool) {
	switch kind := schema["type"].(type) {
	case string:
		return kind, false
	case []any:
		rest := slices.DeleteFunc(slices.Clone(kind), func(one any) bool { return one == "null" })
		nullable = len(rest) < len(kind)
		if len(rest) == 1 {
			text, _ := rest[0].(string)
			return text, nullable
		}
		return "", nullable
	}
	if schema["properties"] != nil {
		return "object", false
	}
	return "", false
}

// follow returns the schema that a reference within the document means.
func (s *structural) follow(schema any, depth int) any {
	from, _ := schema.(object)
	reference, _ := from["$ref"].(string)
	path, local := strings.CutPrefix(reference, "#")
	const longest = 10
	var target any = s.root
	switch {
	case local && path == "":
		return target
	case !strings.HasPrefix(path, "/") || !local || depth > longest:
		return schema
	}
	for _, part := range strings.Split(path, "/")[1:] {
		within, _ := target.(object)
		target = within[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
	}
	return s.follow(target, depth+1)
}

// note says what was left out; "" for nothing.
func (s *structural) note() string {
	if len(s.left) == 0 {
		return ""
	}
	return "the CRD leaves out what a CRD can't say of values.schema.json (" + strings.Join(slices.Sorted(maps.Keys(s.left)), ", ") + "): the chart refuses such values later"
}

// fromValues makes the schema of a kind's spec of values: their types, and the comments above them.
// Objects take further fields, and a field that is null or empty takes anything.
func fromValues(n *yaml.Node) object {
	switch n = source.Field(n); n.Kind {
	case yaml.MappingNode:
		schema := object{"type": "object", anything: true}
		properties := object{}
		for key, value := range source.Pairs(n) {
			if key.Tag == "!!merge" {
				continue
			}
			property := fromValues(value)
			if comment := comment(key.HeadComment); comment != "" {
				property["description"] = comment
			}
			properties[key.Value] = property
		}
		if len(properties) > 0 {
			schema["properties"] = properties
		}
		return schema
	case yaml.SequenceNode:
		return object{"type": "array", "items": object{anything: true}}
	}
	kind := map[string]string{"!!str": "string", "!!int": "integer", "!!float": "number", "!!bool": "boolean"}[n.ShortTag()]
	if kind == "" {
		return object{anything: true}
	}
	return object{"type": kind}
}

// comment returns the text of a comment, without the marks of helm-docs and the like. The last one
// of several paragraphs, and of values that are commented out above, is about the value.
func comment(text string) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	var words []string
	for line := range strings.Lines(paragraphs[len(paragraphs)-1]) {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "#"))
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(line, "--"), "@param"))
		words = append(words, strings.Fields(line)...)
	}
	return strings.Join(words, " ")
}

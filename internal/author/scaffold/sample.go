package scaffold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
	kyaml "sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/author/source"
)

// setSchema sets the schema of the spec, and the other parts of the definition.
func (k *Kind) setSchema(spec object) error {
	if !k.SpecRequired {
		spec["default"] = object{} // Else an object without a spec could have none of it later.
	}
	text, err := kyaml.Marshal(spec)
	var document yaml.Node
	if err == nil {
		err = yaml.Unmarshal(text, &document)
	}
	if err == nil {
		k.SpecSchema, err = yamlText(document.Content[0])
	}
	if err != nil {
		return fmt.Errorf("write the schema: %w", err)
	}
	return nil
}

// yamlText returns a node as YAML, as yamllint wants it.
func yamlText(n *yaml.Node) (string, error) {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	err := encoder.Encode(n)
	return text.String(), err
}

// sampleOf makes the sample's spec of values, with their comments, and of placeholders for required
// fields that the values lack.
func (k *Kind) sampleOf(values []byte, schema object) error {
	var document yaml.Node
	if err := yaml.Unmarshal(values, &document); err != nil {
		return err
	}
	spec := &yaml.Node{Kind: yaml.MappingNode}
	if len(document.Content) > 0 && document.Content[0].Kind == yaml.MappingNode {
		spec = document.Content[0]
	}
	asKubernetesReads(spec)
	trimComments(spec)
	complete(spec, schema)
	if len(spec.Content) == 0 {
		return nil
	}
	text, err := yamlText(spec)
	if err != nil {
		return err
	}
	k.SampleSpec = text
	return kyaml.Unmarshal([]byte(text), &k.sample)
}

// trimComments takes away the spaces at the ends of comments, which yamllint refuses.
func trimComments(n *yaml.Node) {
	for _, comment := range []*string{&n.HeadComment, &n.LineComment, &n.FootComment} {
		lines := strings.Split(*comment, "\n")
		for i, line := range lines {
			lines[i] = strings.TrimRight(line, " \t\r")
		}
		*comment = strings.Join(lines, "\n")
	}
	for _, child := range n.Content {
		trimComments(child)
	}
}

// complete adds to a mapping the fields that the schema of an object requires. Where the mapping
// has an object, it completes that too.
func complete(values *yaml.Node, schema object) {
	properties, _ := schema["properties"].(object)
	required, _ := schema["required"].([]any)
	for _, name := range required {
		name, _ := name.(string)
		if source.Field(values, name) != nil {
			continue
		}
		var value yaml.Node
		text, err := json.Marshal(placeholderFor(properties[name]))
		if err != nil || yaml.Unmarshal(text, &value) != nil {
			continue // It came from JSON.
		}
		key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}
		blockStyle(key)
		blockStyle(value.Content[0])
		values.Content = append(values.Content, key, value.Content[0])
	}
	for key, value := range source.Pairs(values) {
		if inner, isObject := properties[key.Value].(object); isObject && value.Kind == yaml.MappingNode {
			complete(value, inner)
		}
	}
}

func blockStyle(n *yaml.Node) {
	if n.Style &^= yaml.FlowStyle | yaml.DoubleQuotedStyle; n.Kind == yaml.ScalarNode && n.Tag == "!!str" && isQuoted(n.Value) {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range n.Content {
		blockStyle(child)
	}
}

// placeholderFor returns a value that the schema takes, as far as types and choices say it.
func placeholderFor(schema any) any {
	from, _ := schema.(object)
	if choices, _ := from["enum"].([]any); len(choices) > 0 {
		return choices[0]
	}
	switch from["type"] {
	case "integer", "number":
		if minimum, has := from["minimum"]; has {
			return minimum
		}
		return 1
	case "boolean":
		return true
	case "array":
		return []any{}
	case "object":
		value := object{}
		properties, _ := from["properties"].(object)
		required, _ := from["required"].([]any)
		for _, name := range required {
			name, _ := name.(string)
			value[name] = placeholderFor(properties[name])
		}
		return value
	}
	return "change-me"
}

var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// asKubernetesReads writes the plain values of a text so that readers of YAML 1.1 and 1.2 agree on
// them: Kubernetes' clients and Helm take yes for true, and 0755 for 493.
func asKubernetesReads(n *yaml.Node) {
	for i, child := range n.Content {
		asKubernetesReads(child)
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.Tag == "!!bool" {
			child.Tag, child.Style = "!!str", yaml.DoubleQuotedStyle // The key "true", in JSON.
		}
	}
	if n.Kind != yaml.ScalarNode || n.Style != 0 {
		return
	}
	text, err := kyaml.YAMLToJSON([]byte(n.Value))
	if err != nil {
		return // Such as "<<".
	}
	switch said := strings.TrimSpace(string(text)); {
	case said == "true", said == "false":
		n.Tag, n.Value = "!!bool", said
	case strings.HasPrefix(said, `"`) && n.Tag != "!!str" && n.Tag != "!!merge":
		n.Tag, n.Style = "!!str", yaml.DoubleQuotedStyle
	case decimal.MatchString(said) && !decimal.MatchString(n.Value):
		n.Tag, n.Value = "!!float", said
		if !strings.ContainsAny(said, ".eE") {
			n.Tag = "!!int"
		}
	}
}

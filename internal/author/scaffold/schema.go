package scaffold

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// types are the types of a schema for the types of argument specs. "any" has no type in a
// schema.
var types = map[string]string{ //nolint:gochecknoglobals // A table.
	"str": "string", "path": "string", "sid": "string", "json": "string", "jsonarg": "string",
	"bytes": "string", "bits": "string",
	"int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object", "raw": "any",
}

// schemaWidth is the most columns of a line of a description.
const schemaWidth = 90

// schemaWriter writes a schema as YAML, as a person would.
type schemaWriter struct {
	text   strings.Builder
	indent int
}

func (w *schemaWriter) line(format string, args ...any) {
	w.text.WriteString(strings.Repeat(" ", w.indent) + fmt.Sprintf(format, args...) + "\n")
}

func (w *schemaWriter) within(key string, write func()) {
	w.line("%s:", key)
	w.indent += 2
	write()
	w.indent -= 2
}

// object writes an object with these options; without any it takes everything.
func (w *schemaWriter) object(options []option, description string) {
	w.line("type: object")
	w.description(description)
	if len(options) == 0 {
		w.line("x-kubernetes-preserve-unknown-fields: true")
		return
	}
	var required []string
	for _, o := range options {
		if o.required {
			required = append(required, o.key)
		}
	}
	if len(required) > 0 {
		w.line("required: [%s]", strings.Join(required, ", "))
	}
	w.within("properties", func() {
		for _, o := range options {
			w.within(scalar(o.key), func() { w.option(o) })
		}
	})
}

func (w *schemaWriter) option(o option) {
	switch kind := types[o.kind]; {
	case o.kind == "dict":
		w.object(o.options, o.description)
	case o.kind == "list":
		w.line("type: array")
		w.description(o.description)
		w.within("items", func() { w.option(option{kind: elementOf(o), options: o.options, choices: o.choices}) })
		o.choices = nil
	case kind == "any":
		w.description(o.description)
		w.line("x-kubernetes-preserve-unknown-fields: true")
	default:
		w.line("type: %s", kind)
		w.description(o.description)
	}
	if len(o.choices) > 0 {
		var values []string
		for _, choice := range o.choices {
			values = append(values, flow(choice))
		}
		w.line("enum: [%s]", strings.Join(values, ", "))
	}
	if o.fallback != nil {
		w.line("default: %s", flow(o.fallback))
	}
}

// elementOf returns the type of a list's elements.
func elementOf(o option) string {
	switch {
	case o.element != "":
		return o.element
	case len(o.options) > 0:
		return "dict"
	default:
		return "raw"
	}
}

// description writes a description, in several lines if it is long.
func (w *schemaWriter) description(text string) {
	switch {
	case text == "":
	case len(text) <= schemaWidth:
		w.line("description: %s", scalar(text))
	default:
		w.line("description: >-")
		w.indent += 2
		line := ""
		for word := range strings.FieldsSeq(text) {
			if line != "" && len(line)+1+len(word) > schemaWidth {
				w.line("%s", line)
				line = ""
			}
			line = strings.TrimSpace(line + " " + word)
		}
		w.line("%s", line)
		w.indent -= 2
	}
}

// scalar returns a text as a YAML scalar.
func scalar(text string) string {
	return flow(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text})
}

// flow returns a value in one line.
func flow(node *yaml.Node) string {
	copied := *node
	setFlow(&copied)
	text, err := yaml.Marshal(&copied)
	if err != nil {
		return `""`
	}
	return strings.TrimSpace(string(text))
}

// isQuoted reports whether a text needs quotes, also for readers of YAML 1.1, to whom on is
// true: Kubernetes' clients are.
func isQuoted(text string) bool {
	plain, err := yaml.Marshal(text)
	return err != nil || strings.TrimSuffix(string(plain), "\n") != text
}

func setFlow(node *yaml.Node) {
	node.HeadComment, node.LineComment, node.FootComment = "", "", ""
	switch node.Kind {
	case yaml.ScalarNode:
		node.Style = 0
		if node.Tag == "!!str" && isQuoted(node.Value) {
			node.Style = yaml.DoubleQuotedStyle
		}
	case yaml.MappingNode, yaml.SequenceNode:
		node.Style = yaml.FlowStyle
	}
	for _, child := range node.Content {
		setFlow(child)
	}
}

// samples returns a spec with the defaults and placeholders for required options, and its
// variables: those that are required, and all of a playbook, which has no defaults of its own.
func samples(options []option, all bool) (spec, vars string) {
	var specs, variables []string
	for _, o := range options {
		var value string
		switch {
		case o.fallback != nil:
			value = flow(o.fallback)
		case o.required:
			value = placeholder(o)
		default:
			continue
		}
		specs = append(specs, scalar(o.key)+": "+value)
		if all || o.fallback == nil {
			variables = append(variables, o.name+": "+value)
		}
	}
	return strings.Join(specs, "\n"), strings.Join(variables, "\n")
}

func placeholder(o option) string {
	switch {
	case len(o.choices) > 0 && o.kind != "list":
		return flow(o.choices[0])
	case types[o.kind] == "integer", types[o.kind] == "number":
		return "1"
	case o.kind == "bool":
		return "true"
	case o.kind == "list":
		return "[]"
	case o.kind == "dict":
		var parts []string
		for _, inner := range o.options {
			if inner.required {
				parts = append(parts, scalar(inner.key)+": "+placeholder(inner))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	default:
		return "change-me"
	}
}

package watches

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// fieldParser parses the value of a field. If the value is invalid, it adds a fault and
// leaves its target unchanged.
type fieldParser func(field string, n *yaml.Node)

// textField is a field that holds a string.
type textField struct {
	text     string
	line     int  // 0: the entry does not have the field
	reported bool // the value is not a string, and a fault has been added
}

func (f textField) isSet() bool { return f.line != 0 }

// invalidValue adds a fault for a value of the wrong type or out of range.
func (p *parser) invalidValue(field string, n *yaml.Node, allowed string) {
	p.addFault(n.Line, "%s: found %s; write %s", field, describe(followAlias(n)), allowed)
}

// scalar returns the node with its ${VAR} replaced, and reports whether the result is a
// scalar with the tag.
func (p *parser) scalar(n *yaml.Node, tag string) (*yaml.Node, bool) {
	v := p.expand(followAlias(n))
	return v, v.Kind == yaml.ScalarNode && v.ShortTag() == tag
}

func (p *parser) text(into *textField) fieldParser {
	return func(field string, n *yaml.Node) {
		into.line = n.Line
		v, ok := p.scalar(n, "!!str")
		if !ok {
			into.reported = true
			p.invalidValue(field, n, "a text, in quotes where it looks like something else")
			return
		}
		into.text = v.Value
	}
}

func (p *parser) boolean(into *bool) fieldParser {
	return func(field string, n *yaml.Node) {
		v := p.expand(followAlias(n))
		// Decode also accepts yes, no, on and off.
		quoted := v.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0
		if v.Kind != yaml.ScalarNode || v.Tag == "!!null" || quoted || v.Decode(into) != nil {
			p.invalidValue(field, n, "true or false")
		}
	}
}

// oneOf returns the parser of a text that is one of the allowed ones.
func (p *parser) oneOf(into *textField, allowed ...string) fieldParser {
	return func(field string, n *yaml.Node) {
		before := len(p.faults)
		p.text(into)(field, n)
		if len(p.faults) == before && !slices.Contains(allowed, into.text) {
			p.invalidValue(field, n, strings.Join(allowed, ", ")+" (one of them)")
			into.text = ""
		}
	}
}

// integer returns the parser of an integer from low to high. A high below low means no upper limit.
func (p *parser) integer(into *int, low, high int) fieldParser {
	allowed := "a whole number of " + strconv.Itoa(low) + " or more"
	if high >= low {
		allowed = "a whole number from " + strconv.Itoa(low) + " to " + strconv.Itoa(high)
	}
	return func(field string, n *yaml.Node) {
		var i int
		v, ok := p.scalar(n, "!!int")
		if !ok || v.Decode(&i) != nil || i < low || high >= low && i > high || i > math.MaxInt32 {
			p.invalidValue(field, n, allowed)
			return
		}
		*into = i
	}
}

func (p *parser) duration(into *time.Duration) fieldParser {
	return func(field string, n *yaml.Node) {
		v, ok := p.scalar(n, "!!str")
		if !ok {
			p.invalidValue(field, n, `a duration with its unit, such as "90s", "10m" or "8h"`)
			return
		}
		d, err := time.ParseDuration(v.Value)
		if err != nil || d < 0 {
			p.invalidValue(field, n, `a duration of 0s or more, such as "90s", "10m" or "8h"`)
			return
		}
		*into = d
	}
}

func (p *parser) required(field string, value textField, line int, example string) {
	if !value.isSet() {
		p.addFault(line, "%s is missing; add one such as %s", field, example)
		return
	}
	p.notEmpty(field, value, "one such as "+example)
}

// notEmpty adds a fault if the field is set and empty. It reports whether there is a text.
func (p *parser) notEmpty(field string, value textField, allowed string) bool {
	if value.text == "" && !value.reported {
		p.addFault(value.line, "%s is empty; write %s", field, allowed)
	}
	return value.text != ""
}

// validName adds a fault if faults, the result of a validation of the name, has any.
func (p *parser) validName(field string, value textField, faults []string, allowed string) {
	if value.text != "" && len(faults) > 0 {
		p.addFault(value.line, "%s: %q is not allowed; write %s", field, value.text, allowed)
	}
}

func (p *parser) mapping(what string, known map[string]fieldParser) fieldParser {
	return func(field string, n *yaml.Node) {
		m := followAlias(n)
		if m.Kind != yaml.MappingNode {
			p.invalidValue(field, n, "a mapping with "+strings.Join(slices.Sorted(maps.Keys(known)), ", "))
			return
		}
		p.parseFields(m, what, known)
	}
}

// list returns the parser of a list that calls each for every element. A null value is an
// empty list.
func (p *parser) list(each fieldParser) fieldParser {
	return func(field string, n *yaml.Node) {
		l := followAlias(n)
		switch {
		case l.Tag == "!!null":
		case l.Kind != yaml.SequenceNode:
			p.invalidValue(field, n, "a list")
		default:
			for _, element := range l.Content {
				if p.countValue(element.Line) {
					each(field, element)
				}
			}
		}
	}
}

// vars returns the parser of a mapping of any values. A null value is an empty mapping.
func (p *parser) vars(into *map[string]any) fieldParser {
	return func(field string, n *yaml.Node) {
		if followAlias(n).Tag == "!!null" {
			return
		}
		if followAlias(n).Kind != yaml.MappingNode {
			p.invalidValue(field, n, "a mapping of variables")
			return
		}
		*into, _ = p.jsonValue(field, n, 1).(map[string]any)
	}
}

// jsonValue returns the node as a JSON value, nil after a fault. at is the path of the
// node for messages.
func (p *parser) jsonValue(at string, n *yaml.Node, depth int) any {
	v := p.expand(followAlias(n))
	switch {
	case !p.countValue(n.Line):
		return nil
	case depth > maxDepth:
		p.addFault(n.Line, "vars nest deeper than %d levels; flatten them", maxDepth)
		return nil
	case v.Kind == yaml.MappingNode && v.ShortTag() == "!!map":
		m := map[string]any{}
		for _, f := range p.mappingFields(v) {
			m[f.key] = p.jsonValue(at+"."+f.key, f.value, depth+1)
		}
		return m
	case v.Kind == yaml.SequenceNode && v.ShortTag() == "!!seq":
		l := make([]any, len(v.Content))
		for i, element := range v.Content {
			l[i] = p.jsonValue(at+"["+strconv.Itoa(i)+"]", element, depth+1)
		}
		return l
	case v.Kind == yaml.ScalarNode:
		value, allowed := scalarValue(v)
		if allowed != "" {
			p.invalidValue(at, n, allowed)
		}
		return value
	default:
		p.invalidValue(at, n, "it without the tag "+v.Tag+", which Ansible would not see")
		return nil
	}
}

// scalarValue returns the scalar as a JSON value, or else a description of the allowed values. A
// timestamp stays a string, because JSON has no type for it.
func scalarValue(v *yaml.Node) (value any, allowed string) {
	switch v.ShortTag() {
	case "!!null":
		return nil, ""
	case "!!bool":
		return decodeScalar[bool](v, "true or false")
	case "!!int":
		return decodeScalar[int64](v, "an integer of 64 bits, or put it into quotes")
	case "!!float":
		value, allowed = decodeScalar[float64](v, "a number, or put it into quotes")
		if f, ok := value.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return nil, "a finite number, or put it into quotes"
		}
		return value, allowed
	case "!!str", "!!timestamp", "!!merge":
		return v.Value, ""
	default:
		return nil, "it without the tag " + v.Tag + ", which Ansible would not see"
	}
}

func decodeScalar[T any](v *yaml.Node, allowed string) (any, string) {
	var value T
	if v.Decode(&value) != nil {
		return nil, allowed
	}
	return value, ""
}

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

// setter reads the value of a field. It reports what it cannot use and leaves
// its target as it was.
type setter func(field string, n *yaml.Node)

// located is a text and where it stands; line 0 means that it was not given.
type located struct {
	text     string
	line     int
	reported bool // its value could not be used, and that has been said
}

func (l located) given() bool { return l.line != 0 }

// wrong reports a value of another type than the field has.
func (r *reader) wrong(field string, n *yaml.Node, allowed string) {
	r.fault(n.Line, "%s: found %s; write %s", field, shown(resolved(n)), allowed)
}

// scalar is the node's value with its ${VAR} replaced, if it is of the tag.
func (r *reader) scalar(n *yaml.Node, tag string) (*yaml.Node, bool) {
	v := r.expand(resolved(n))
	return v, v.Kind == yaml.ScalarNode && v.ShortTag() == tag
}

func (r *reader) text(into *located) setter {
	return func(field string, n *yaml.Node) {
		into.line = n.Line
		v, ok := r.scalar(n, "!!str")
		if !ok {
			into.reported = true
			r.wrong(field, n, "a text, in quotes where it looks like something else")
			return
		}
		into.text = v.Value
	}
}

func (r *reader) flag(into *bool) setter {
	return func(field string, n *yaml.Node) {
		v := r.expand(resolved(n))
		// yaml.v3 takes yes and on for truth values here, as authors expect.
		quoted := v.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0
		if v.Kind != yaml.ScalarNode || v.Tag == "!!null" || quoted || v.Decode(into) != nil {
			r.wrong(field, n, "true or false")
		}
	}
}

// integer reads a whole number of at least low, and of at most high unless
// high is below low.
func (r *reader) integer(into *int, low, high int) setter {
	allowed := "a whole number of " + strconv.Itoa(low) + " or more"
	if high >= low {
		allowed = "a whole number from " + strconv.Itoa(low) + " to " + strconv.Itoa(high)
	}
	return func(field string, n *yaml.Node) {
		var i int
		v, ok := r.scalar(n, "!!int")
		if !ok || v.Decode(&i) != nil || i < low || high >= low && i > high || i > math.MaxInt32 {
			r.wrong(field, n, allowed)
			return
		}
		*into = i
	}
}

func (r *reader) duration(into *time.Duration) setter {
	return func(field string, n *yaml.Node) {
		v, ok := r.scalar(n, "!!str")
		if !ok {
			r.wrong(field, n, `a duration with its unit, such as "90s", "10m" or "8h"`)
			return
		}
		d, err := time.ParseDuration(v.Value)
		if err != nil || d < 0 {
			r.wrong(field, n, `a duration of 0s or more, such as "90s", "10m" or "8h"`)
			return
		}
		*into = d
	}
}

func (r *reader) required(field string, value located, line int, example string) {
	if !value.given() {
		r.fault(line, "%s is missing; add one such as %s", field, example)
		return
	}
	r.filled(field, value, "one such as "+example)
}

// filled reports a text that was given and is empty.
func (r *reader) filled(field string, value located, allowed string) bool {
	if value.text == "" && !value.reported {
		r.fault(value.line, "%s is empty; write %s", field, allowed)
	}
	return value.text != ""
}

// named reports a name that no API server would accept.
func (r *reader) named(field string, value located, faults []string, allowed string) {
	if value.text != "" && len(faults) > 0 {
		r.fault(value.line, "%s: %q is not allowed; write %s", field, value.text, allowed)
	}
}

// mapping hands the fields of a mapping to their setters.
func (r *reader) mapping(what string, known map[string]setter) setter {
	return func(field string, n *yaml.Node) {
		m := resolved(n)
		if m.Kind != yaml.MappingNode {
			r.wrong(field, n, "a mapping with "+strings.Join(slices.Sorted(maps.Keys(known)), ", "))
			return
		}
		r.fields(m, what, known)
	}
}

// list hands each element to each. An absent value is an empty list.
func (r *reader) list(each setter) setter {
	return func(field string, n *yaml.Node) {
		l := resolved(n)
		switch {
		case l.Tag == "!!null":
		case l.Kind != yaml.SequenceNode:
			r.wrong(field, n, "a list")
		default:
			for _, element := range l.Content {
				if r.affordable(element.Line) {
					each(field, element)
				}
			}
		}
	}
}

// vars reads a mapping of any values. An absent value is an empty mapping.
func (r *reader) vars(into *map[string]any) setter {
	return func(field string, n *yaml.Node) {
		if resolved(n).Tag == "!!null" {
			return
		}
		if resolved(n).Kind != yaml.MappingNode {
			r.wrong(field, n, "a mapping of variables")
			return
		}
		*into, _ = r.value(field, n, 1).(map[string]any)
	}
}

// value is the node as JSON would hold it; nil after a fault. at is the path
// of the node for messages.
func (r *reader) value(at string, n *yaml.Node, depth int) any {
	v := r.expand(resolved(n))
	switch {
	case !r.affordable(n.Line):
		return nil
	case depth > maxDepth:
		r.fault(n.Line, "vars nest deeper than %d levels; flatten them", maxDepth)
		return nil
	case v.Kind == yaml.MappingNode && v.ShortTag() == "!!map":
		m := map[string]any{}
		for _, p := range r.pairs(v) {
			m[p.key] = r.value(at+"."+p.key, p.value, depth+1)
		}
		return m
	case v.Kind == yaml.SequenceNode && v.ShortTag() == "!!seq":
		l := make([]any, len(v.Content))
		for i, element := range v.Content {
			l[i] = r.value(at+"["+strconv.Itoa(i)+"]", element, depth+1)
		}
		return l
	case v.Kind == yaml.ScalarNode:
		return r.atom(at, n, v)
	default:
		r.wrong(at, n, "it without the tag "+v.Tag+", which Ansible would not see")
		return nil
	}
}

// atom is a single value.
func (r *reader) atom(at string, n, v *yaml.Node) any {
	value, allowed := plain(v)
	if allowed != "" {
		r.wrong(at, n, allowed)
	}
	return value
}

// plain is the scalar as JSON would hold it, or else what is allowed instead.
// Times stay the text they are written as, since JSON has none.
func plain(v *yaml.Node) (value any, allowed string) {
	switch v.ShortTag() {
	case "!!null":
		return nil, ""
	case "!!bool":
		return decoded[bool](v, "true or false")
	case "!!int":
		return decoded[int64](v, "an integer of 64 bits, or put it into quotes")
	case "!!float":
		value, allowed = decoded[float64](v, "a number, or put it into quotes")
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

func decoded[T any](v *yaml.Node, allowed string) (any, string) {
	var value T
	if v.Decode(&value) != nil {
		return nil, allowed
	}
	return value, ""
}

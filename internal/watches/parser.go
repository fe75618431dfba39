package watches

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/suggest"
)

const (
	// maxValues bounds the number of values in the file after its aliases are expanded: a
	// small file with aliases of aliases can expand to billions.
	maxValues = 100_000
	// maxDepth bounds the nesting of vars; Ansible can load about 160 levels.
	maxDepth = 64
)

// parser turns the nodes of the file into watches and collects the faults. After a fault
// it goes on with the rest of the file.
type parser struct {
	path      string
	lookupEnv func(string) (string, bool)
	onUnset   func(name string, line int) // may be nil; see Search.OnUnset
	// custom is the kind of the content of a watch that a Go program makes; nil: that of a field.
	custom     *ContentKind
	faults     Faults
	valueCount int // values so far, with aliases expanded
}

func (p *parser) addFault(line int, format string, args ...any) {
	p.faults = append(p.faults, Fault{p.path, line, escapeUnprintable(fmt.Sprintf(format, args...))})
}

// escapeUnprintable writes line breaks and control characters as Go escapes, because a
// message may quote the file: it stays on one line and cannot control a terminal.
func escapeUnprintable(text string) string {
	var line strings.Builder
	for _, c := range text {
		if unicode.IsPrint(c) {
			line.WriteRune(c)
			continue
		}
		line.WriteString(strings.Trim(strconv.QuoteRune(c), "'"))
	}
	return line.String()
}

// mappingField is one field of a mapping.
type mappingField struct {
	key   string
	line  int
	value *yaml.Node
}

// mappingFields returns the fields of a mapping, with those that "<<" merges. The
// mapping's own fields override merged ones.
func (p *parser) mappingFields(n *yaml.Node) []mappingField {
	var fields, merged []mappingField
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := followAlias(n.Content[i]), n.Content[i+1]
		switch {
		case !p.countValue(key.Line):
			return nil
		case key.Tag == "!!merge":
			merged = append(merged, p.mergedFields(value)...)
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			p.addFault(key.Line, "the key %s is not a string; put it into quotes", describe(key))
		case lines[key.Value] != 0:
			p.addFault(key.Line, "the key %q stands on line %d already; keep one of the two", key.Value, lines[key.Value])
		default:
			lines[key.Value] = key.Line
			fields = append(fields, mappingField{key.Value, key.Line, value})
		}
	}
	for _, f := range merged {
		if lines[f.key] == 0 {
			lines[f.key] = f.line
			fields = append(fields, f)
		}
	}
	return fields
}

// mergedFields returns the fields of the value of "<<": a mapping, or a list of mappings. The first
// of several fields with the same name counts.
func (p *parser) mergedFields(n *yaml.Node) []mappingField {
	n = followAlias(n)
	sources := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		sources = n.Content
	}
	var merged []mappingField
	for _, source := range sources {
		mapping := followAlias(source)
		if mapping.Kind != yaml.MappingNode {
			p.addFault(source.Line, "<< merges %s; only a mapping can be merged", describe(mapping))
			continue
		}
		merged = append(merged, p.mappingFields(mapping)...)
	}
	return merged
}

// countValue counts a value and reports whether the limit allows it. It adds a fault for
// the first value above the limit.
func (p *parser) countValue(line int) bool {
	p.valueCount++
	if p.valueCount == maxValues+1 {
		p.addFault(line, "the file holds more than %d values once its aliases are expanded; use fewer aliases", maxValues)
	}
	return p.valueCount <= maxValues
}

// expand replaces ${VAR} in a scalar if VAR is set, and ${VAR:-default} as a shell does.
// The type of a scalar without quotes is resolved again; an empty result stays a string.
func (p *parser) expand(n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.ScalarNode || p.lookupEnv == nil || !strings.Contains(n.Value, "${") {
		return n
	}
	text := envReference.ReplaceAllStringFunc(n.Value, func(reference string) string {
		parts := envReference.FindStringSubmatch(reference)
		name, hasDefault, fallback := parts[1], parts[2] != "", parts[3]
		value, set := p.lookupEnv(name)
		switch {
		case hasDefault:
			return cmp.Or(value, fallback)
		case set:
			return value
		case p.onUnset != nil:
			p.onUnset(name, n.Line)
		}
		return reference
	})
	if text == n.Value {
		return n
	}
	expanded := *n
	expanded.Value = text
	if n.Style == 0 && text != "" {
		expanded.Tag = ""
		expanded.Tag = expanded.ShortTag()
	}
	return &expanded
}

var envReference = regexp.MustCompile(`\$\{([a-zA-Z_][a-zA-Z0-9_]*)(:-([^}]*))?\}`)

// followAlias returns the node that an alias stands for, and any other node itself.
func followAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// describe describes a node for a message, with ${VAR} as the file has it: messages must
// not show values of environment variables.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	case len(n.Value) > 80:
		return strconv.Quote(n.Value[:80]) + "…"
	default:
		return strconv.Quote(n.Value)
	}
}

// parseFields calls the parser of each field of a mapping, and adds a fault for an unknown
// field.
func (p *parser) parseFields(n *yaml.Node, what string, known map[string]fieldParser) {
	for _, f := range p.mappingFields(n) {
		if set, ok := known[f.key]; ok {
			set(f.key, f.value)
			continue
		}
		names := slices.Sorted(maps.Keys(known))
		if meant := suggest.DidYouMean(f.key, names); meant != "" {
			p.addFault(f.line, "%q is not a field of %s%s", f.key, what, meant)
			continue
		}
		p.addFault(f.line, "%q is not a field of %s; it has %s", f.key, what, strings.Join(names, ", "))
	}
}

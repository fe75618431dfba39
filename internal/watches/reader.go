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
)

const (
	// maxValues bounds what aliases can make of a small file.
	maxValues = 100_000
	// maxDepth is how deep vars may nest; Ansible manages about 160.
	maxDepth = 64
)

// reader turns the file's nodes into values and collects what is wrong with
// them. After a fault it goes on with the rest of the file.
type reader struct {
	file   string
	lookup func(string) (string, bool)
	// unset is told of variables that have no value; may be nil.
	unset  func(name string, line int)
	faults Faults
	values int // read so far, aliases expanded
}

func (r *reader) fault(line int, format string, args ...any) {
	r.faults = append(r.faults, Fault{r.file, line, oneLine(fmt.Sprintf(format, args...))})
}

// oneLine writes characters that a terminal acts on as Go does: a message stays
// one line, whatever of the file it repeats.
func oneLine(text string) string {
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

// pair is one field of a mapping.
type pair struct {
	key   string
	line  int
	value *yaml.Node
}

// pairs are the fields of a mapping, merge keys included: what the mapping
// says itself is stronger than what it merges.
func (r *reader) pairs(n *yaml.Node) []pair {
	var own, merged []pair
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolved(n.Content[i]), n.Content[i+1]
		switch {
		case !r.affordable(key.Line):
			return nil
		case key.Tag == "!!merge":
			merged = append(merged, r.merge(value)...)
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			r.fault(key.Line, "the key %s is no text; put it into quotes", shown(key))
		case lines[key.Value] != 0:
			r.fault(key.Line, "the key %q stands on line %d already; keep one of the two", key.Value, lines[key.Value])
		default:
			lines[key.Value] = key.Line
			own = append(own, pair{key.Value, key.Line, value})
		}
	}
	for _, p := range merged {
		if lines[p.key] == 0 {
			lines[p.key] = p.line
			own = append(own, p)
		}
	}
	return own
}

// merge reads what follows "<<": a mapping, or a list of them of which the
// first is the strongest.
func (r *reader) merge(n *yaml.Node) []pair {
	n = resolved(n)
	sources := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		sources = n.Content
	}
	var merged []pair
	for _, source := range sources {
		mapping := resolved(source)
		if mapping.Kind != yaml.MappingNode {
			r.fault(source.Line, "<< merges %s; only a mapping can be merged", shown(mapping))
			continue
		}
		merged = append(merged, r.pairs(mapping)...)
	}
	return merged
}

// affordable counts values, and says once when there are too many.
func (r *reader) affordable(line int) bool {
	r.values++
	if r.values == maxValues+1 {
		r.fault(line, "the file holds more than %d values once its aliases are expanded; use fewer aliases", maxValues)
	}
	return r.values <= maxValues
}

// expand replaces ${VAR} in a scalar where VAR is set, and ${VAR:-default}, as a shell
// does. A plain scalar is typed anew, but an empty one stays an empty text.
func (r *reader) expand(n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.ScalarNode || r.lookup == nil || !strings.Contains(n.Value, "${") {
		return n
	}
	text := variable.ReplaceAllStringFunc(n.Value, func(reference string) string {
		parts := variable.FindStringSubmatch(reference)
		name, hasDefault, fallback := parts[1], parts[2] != "", parts[3]
		value, set := r.lookup(name)
		switch {
		case hasDefault:
			return cmp.Or(value, fallback)
		case set:
			return value
		case r.unset != nil:
			r.unset(name, n.Line)
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

var variable = regexp.MustCompile(`\$\{([a-zA-Z_][a-zA-Z0-9_]*)(:-([^}]*))?\}`)

// resolved follows an alias.
func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// shown describes a node as the file has it: what the environment put in is
// not repeated in messages.
func shown(n *yaml.Node) string {
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

// fields hands each field of a mapping to the setter of its name.
func (r *reader) fields(n *yaml.Node, what string, known map[string]setter) {
	for _, p := range r.pairs(n) {
		if set, ok := known[p.key]; ok {
			set(p.key, p.value)
			continue
		}
		names := slices.Sorted(maps.Keys(known))
		if near := Closest(p.key, names); near != "" {
			r.fault(p.line, "%q is no field of %s; did you mean %q?", p.key, what, near)
			continue
		}
		r.fault(p.line, "%q is no field of %s; it has %s", p.key, what, strings.Join(names, ", "))
	}
}

// Closest returns the known name that a typing error may have turned into name, or
// "".
func Closest(name string, known []string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, candidate := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(candidate)); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance counts the letters to insert, delete or replace to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

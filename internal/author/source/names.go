package source

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
)

// maxNames bounds the names that one text may stand for.
const maxNames = 500

// Any stands in a name for a part that only a run knows.
const Any = "*"

var braces = regexp.MustCompile(`(?s)\{\{.*?\}\}`)

// Names returns the texts that a node may stand for, such as those that a loop gives to
// "{{ item.name }}.yml.j2", or the literal elements of a list. Where a part of a text is known in
// a run only, the part is Any, and known is false.
func (i *Index) Names(n *yaml.Node, t *Task) (names []string, known bool) {
	return i.names(n, t, 0)
}

func (i *Index) names(n *yaml.Node, t *Task, depth int) ([]string, bool) {
	n = follow(n)
	switch {
	case n == nil || depth > maxDepth:
		return nil, false
	case n.Kind == yaml.SequenceNode:
		return i.namesOf(n.Content, t, depth)
	case n.Kind != yaml.ScalarNode:
		return nil, false
	}
	text := i.texts[n]
	if text == nil {
		return nonEmpty(n.Value), n.Value != ""
	}
	if text.Analysis.Whole && len(text.Analysis.Outputs) == 1 {
		if parts := text.Analysis.Outputs[0].Value.Parts; parts != nil {
			return i.joined(parts, t, depth)
		}
		values, known := i.Values(n, t)
		nodes := make([]*yaml.Node, 0, len(values))
		for _, v := range values {
			if v.Node != n {
				nodes = append(nodes, v.Node)
			}
		}
		names, all := i.namesOf(nodes, t, depth+1)
		return names, known && all
	}
	return i.pieces(text, t, depth)
}

func (i *Index) namesOf(nodes []*yaml.Node, t *Task, depth int) (names []string, known bool) {
	known = true
	for _, n := range nodes {
		found, all := i.names(n, t, depth+1)
		names, known = append(names, found...), known && all
	}
	return distinct(names), known && len(names) > 0
}

// pieces returns the possible texts of a text with words and expressions.
func (i *Index) pieces(text *Text, t *Task, depth int) ([]string, bool) {
	between := braces.Split(text.Value, -1)
	if len(between) != len(text.Analysis.Outputs)+1 || strings.Contains(text.Value, "{%") {
		return nil, false
	}
	names, known := []string{between[0]}, true
	for k, output := range text.Analysis.Outputs {
		found, all := i.termNames(output.Value, t, depth)
		names, known = product(product(names, found), []string{between[k+1]}), known && all
	}
	return distinct(names), known
}

// TermNames is Names for the argument of a lookup.
func (i *Index) TermNames(v reader.Value, t *Task) (names []string, known bool) {
	return i.termNames(v, t, 0)
}

// termNames returns Any for unknown parts.
func (i *Index) termNames(v reader.Value, t *Task, depth int) ([]string, bool) {
	unknown := []string{Any}
	switch text, isText := v.Literal.(string); {
	case v.IsLiteral && isText:
		return []string{text}, true
	case depth > maxDepth || v.IsLiteral:
		return unknown, false
	case v.Parts != nil:
		return i.joined(v.Parts, t, depth)
	case len(v.Flows) != 1:
		return unknown, false
	}
	values, known := i.flowValues(v.Flows[0], t, depth)
	var names []string
	for _, value := range values {
		found, all := i.names(value.Node, t, depth+1)
		names, known = append(names, found...), known && all
	}
	if len(names) == 0 || !known {
		return distinct(append(names, Any)), false
	}
	return distinct(names), true
}

func (i *Index) joined(parts []reader.Value, t *Task, depth int) ([]string, bool) {
	names, known := []string{""}, true
	for _, part := range parts {
		found, all := i.termNames(part, t, depth+1)
		names, known = product(names, found), known && all
	}
	return distinct(names), known
}

func product(heads, tails []string) []string {
	var all []string
	for _, head := range heads {
		for _, tail := range tails {
			if len(all) < maxNames {
				all = append(all, head+tail)
			}
		}
	}
	return all
}

func distinct(names []string) []string {
	var found []string
	for _, name := range names {
		if !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

// FindFiles is FindFile for a name with Any, and for a pattern of with_fileglob. A name that may
// be anything has no files.
func FindFiles(t *Task, part, name string) []string {
	name = t.here(name)
	if path := FindFile(t, part, name); path != "" {
		return []string{path}
	}
	if strings.Trim(filepath.Base(name), Any+".") == "" {
		return nil
	}
	return filesLike(placesOf(t, part, name), name)
}

// Behind returns the nodes that give a variable its value: the list of its loop, or the values in
// the places that define it. It is nil for the result of a task, and for values of a resource.
func (i *Index) Behind(name string, t *Task) []*yaml.Node {
	if loop, looping := loopOf(name, t); looping {
		return []*yaml.Node{loop.Loop}
	}
	if i.FromCR(name, []*Definition{{How: RoleVar}}) {
		return nil
	}
	var found []*yaml.Node
	for _, d := range i.Defined(name, t) {
		if d.Value == nil {
			return nil
		}
		found = append(found, d.Value)
	}
	return found
}

func literal(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

// literalList returns the list that a text such as "{{ ['a', 'b'] }}" is; nil for other texts.
func literalList(t *Text) *yaml.Node {
	if !t.Analysis.Whole || len(t.Analysis.Outputs) != 1 {
		return nil
	}
	list, ok := t.Analysis.Outputs[0].Value.Literal.([]any)
	if !ok {
		return nil
	}
	encoded, err := json.Marshal(list)
	if err != nil {
		return nil
	}
	var document yaml.Node
	if yaml.Unmarshal(encoded, &document) != nil || len(document.Content) == 0 {
		return nil
	}
	return document.Content[0]
}

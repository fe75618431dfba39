package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/author/source"
)

// insert adds an item to the list at a path of keys of a YAML text; no keys is a file that is
// a list. The item is YAML without the dash; comments at its beginning come above the dash. All
// other lines stay as they are, comments too.
func insert(text []byte, item string, keys ...string) ([]byte, error) {
	list, err := listAt(text, keys)
	if err != nil {
		return nil, err
	}
	before := len(list.Content)
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	var after int // The item comes after so many lines.
	column := list.Column
	switch {
	case list.Tag == "!!null": // Nothing stands there: then kubebuilder adds items too, in the column of the key.
		after = list.Line
	case before == 0: // "[]" stands there.
		after = list.Line
		line := lines[after-1]
		rest := strings.TrimRight(line[:list.Column-1], " ")
		column = len(line) - len(strings.TrimLeft(line, " ")) + 1
		if len(keys) > 0 {
			column += 2
		}
		if lines[after-1] = rest; rest == "" {
			lines, after = append(lines[:after-1], lines[after:]...), after-1
		}
	case list.Style&yaml.FlowStyle != 0:
		return nil, fmt.Errorf("%d: the list stands in one line, as [a, b]: write each of its items in a line of its own", list.Line)
	default:
		after = source.LastLine(lines, list.Content[before-1].Line, len(lines), column)
	}
	added := strings.Split(indent(column+1, item), "\n")
	first := slices.IndexFunc(added, func(line string) bool { return !strings.HasPrefix(strings.TrimLeft(line, " "), "#") })
	for i := range first {
		added[i] = strings.Repeat(" ", column-1) + strings.TrimLeft(added[i], " ")
	}
	added[first] = strings.Repeat(" ", column-1) + "- " + strings.TrimLeft(added[first], " ")
	if strings.Contains(item, "\n") && len(keys) == 0 && before > 0 {
		added = append([]string{""}, added...)
	}
	lines = append(lines[:after], append(added, lines[after:]...)...)
	result := []byte(strings.Join(lines, "\n") + "\n")
	if now, err := listAt(result, keys); err != nil || len(now.Content) != before+1 {
		return nil, fmt.Errorf("%d: the list is written in a way that this program cannot add to; add this item by hand:\n%s", list.Line, item)
	}
	return result, nil
}

// listAt returns the node of the list.
func listAt(text []byte, keys []string) (*yaml.Node, error) {
	var document yaml.Node
	switch err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("1: the file is empty: write [] for a list without items, then repeat the command")
	case err != nil:
		return nil, fmt.Errorf("%d: invalid YAML: correct the file, then repeat the command: %w", source.ErrorLine(err), err)
	}
	node := document.Content[0]
	for _, name := range keys {
		key, found := source.Entry(node, name)
		if found == nil {
			return nil, fmt.Errorf("%d: there is no %s", node.Line, name)
		}
		if node = found; found.Tag == "!!null" && found.Value == "" {
			node = &yaml.Node{Kind: yaml.SequenceNode, Line: key.Line, Column: key.Column, Tag: found.Tag}
		}
	}
	if node.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("%d: a list is needed here, such as []; correct the file, then repeat the command", node.Line)
	}
	return node, nil
}

// propertiesOf returns the names of the properties of a schema.
func propertiesOf(schema *yaml.Node) map[string]bool {
	names := map[string]bool{}
	for name := range source.Pairs(source.Field(schema, "properties")) {
		names[name.Value] = true
	}
	return names
}

// deepest returns the last line on which a node, or one in it, begins.
func deepest(node *yaml.Node) int {
	line := node.Line
	for _, child := range node.Content {
		line = max(line, deepest(child))
	}
	return line
}

// addKeys adds lines to a mapping of a YAML text. key is that of the mapping, nil for the whole
// text. All other lines stay as they are, comments too.
func addKeys(text []byte, key, node *yaml.Node, added []string) ([]byte, error) {
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	switch count := len(node.Content); {
	case count > 0 && node.Style&yaml.FlowStyle == 0:
		first, last := node.Content[0], node.Content[count-1]
		after := source.LastLine(lines, max(node.Content[count-2].Line, deepest(last)), len(lines), first.Column)
		lines = slices.Insert(lines, after, strings.Split(indent(first.Column-1, strings.Join(added, "\n")), "\n")...)
	case count == 0 && strings.Count(lines[node.Line-1], "{}") == 1:
		column := 0
		if key != nil {
			column = key.Column + 1
		}
		before, after, _ := strings.Cut(lines[node.Line-1], "{}")
		rest := strings.TrimRight(before+strings.TrimLeft(after, " "), " ")
		indented := strings.Split(indent(column, strings.Join(added, "\n")), "\n")
		if rest != "" {
			indented = append([]string{rest}, indented...)
		}
		lines = slices.Replace(lines, node.Line-1, node.Line, indented...)
	default:
		return nil, errors.New("the mapping stands in one line")
	}
	result := []byte(strings.Join(lines, "\n") + "\n")
	return result, yaml.Unmarshal(result, &yaml.Node{})
}

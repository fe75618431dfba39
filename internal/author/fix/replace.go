package fix

import (
	"errors"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/author/source"
)

var (
	errAnchor = errors.New("it has an anchor or a tag: other places may use it")
	errLines  = errors.New("its text spans several lines")
	errMoved  = errors.New("the file has another text there")
	errOthers = errors.New("the rewrite would also change other values of the file")
)

// replace returns the text with the scalar of the edit replaced.
func replace(text string, e Edit) (string, error) {
	start, err := offset(text, e.Node.Line, e.Node.Column)
	if err != nil {
		return "", err
	}
	length, err := extent(text[start:], e.Node)
	if err != nil {
		return "", err
	}
	before, err := scalars(text)
	if err != nil {
		return "", err
	}
	for _, written := range spellings(text[start], e.Value) {
		after := text[:start] + written + text[start+length:]
		if now, err := scalars(after); err == nil && onlyChange(before, now, e.Value) {
			return after, nil
		}
	}
	return "", errOthers
}

// offset returns where a line and column are, which count from 1. Columns count characters.
func offset(text string, line, column int) (int, error) {
	at := 0
	for ; line > 1; line-- {
		end := strings.IndexByte(text[at:], '\n')
		if end < 0 {
			return 0, errMoved
		}
		at += end + 1
	}
	for n := range text[at:] {
		if column--; column == 0 {
			return at + n, nil
		}
	}
	return 0, errMoved
}

// extent returns how many bytes a scalar has in the text that begins with it.
func extent(text string, n *yaml.Node) (int, error) {
	switch {
	case n.Anchor != "" || n.Style&yaml.TaggedStyle != 0:
		return 0, errAnchor
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return 0, errLines
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0:
		if !strings.HasPrefix(text, n.Value) || n.Value == "" {
			return 0, errLines
		}
		return len(n.Value), nil
	}
	return quotedExtent(text)
}

// quotedExtent returns it for a scalar in quotes, which ends in its first line.
func quotedExtent(text string) (int, error) {
	quote := text[0]
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			return 0, errLines
		case quote == '"' && c == '\\':
			i++
		case quote == '\'' && c == '\'' && i+1 < len(text) && text[i+1] == '\'':
			i++
		case c == quote:
			return i + 1, nil
		}
	}
	return 0, errMoved
}

// spellings are ways to write a value, as the old text was written first.
func spellings(first byte, value string) []string {
	double := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
	single := "'" + strings.ReplaceAll(value, "'", "''") + "'"
	switch {
	case first == '\'':
		return []string{single}
	case first == '"' || strings.Contains(value, "{{") && !strings.Contains(value, `"`):
		return []string{double}
	case strings.Contains(value, `"`):
		return []string{value, single, double}
	default:
		return []string{value, double, single}
	}
}

// scalars returns the kinds and values of all nodes of a text, in their order.
func scalars(text string) (all []string, err error) {
	var visit func(n *yaml.Node)
	visit = func(n *yaml.Node) {
		all = append(all, n.ShortTag()+" "+n.Anchor+" "+n.Value)
		for _, child := range n.Content {
			visit(child)
		}
	}
	documents, fault := source.Parse("", []byte(text))
	if fault != nil {
		return nil, errors.New(fault.Message)
	}
	for _, document := range documents {
		visit(document)
	}
	return all, nil
}

// onlyChange reports whether one node alone differs, and has the value as a text.
func onlyChange(before, after []string, value string) bool {
	if len(before) != len(after) {
		return false
	}
	changed := 0
	for i := range before {
		if before[i] != after[i] {
			changed++
			if after[i] != "!!str  "+value {
				return false
			}
		}
	}
	return changed == 1
}

// Package boundedyaml converts YAML of other authors to JSON. A YAML document of a few lines can
// stand for gigabytes by its aliases, and the parser bounds only their number.
package boundedyaml

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	yamlnode "gopkg.in/yaml.v3"
	"sigs.k8s.io/yaml"
)

const (
	// maxAliases bounds the number of aliases in a YAML document, and maxExpanded the bytes of
	// the document once each alias is expanded. The YAML parser bounds neither.
	maxAliases  = 1000
	maxExpanded = 3 << 20
	// maxEntries bounds the number that Entries returns for the body of a request.
	maxEntries = 250_000
)

// alias matches each alias of a YAML document, and words in its text that look like one.
var alias = regexp.MustCompile(`\*[0-9A-Za-z_-]`)

// RequestToJSON is ToJSON for the body of a request: it is an error if YAML has more than 250,000 entries.
func RequestToJSON(body []byte) ([]byte, error) {
	if Entries(body) > maxEntries && !json.Valid(body) {
		return nil, fmt.Errorf("it has more than %d lines, commas and brackets: write it as JSON", maxEntries)
	}
	return ToJSON(body)
}

// ToJSON converts a YAML document to JSON, and returns JSON as it is. It is an error if YAML has more
// than 1000 aliases, or more than 3 MiB once they are expanded.
func ToJSON(document []byte) ([]byte, error) {
	if json.Valid(document) {
		return document, nil
	}
	switch count := len(alias.FindAllIndex(document, maxAliases+1)); {
	case count > maxAliases:
		return nil, fmt.Errorf("it has more than %d aliases, or words that begin like one (*a): write it as JSON", maxAliases)
	case count > 0:
		var root yamlnode.Node
		if err := yamlnode.Unmarshal(document, &root); err != nil {
			return nil, err
		}
		if expandedSize(&root, map[*yamlnode.Node]int{}) > maxExpanded {
			return nil, errors.New("its aliases make it too large")
		}
	}
	return yaml.YAMLToJSON(document)
}

// Entries returns how many entries of maps and lists, and lines, a YAML document has at most: each
// but the first begins after one of these characters. An entry can take a thousand bytes once it is
// parsed, however short its text is.
func Entries(document []byte) (n int) {
	for i, c := range document {
		switch c {
		case '{', '[', ',', '\n', '\r', 0x85, 0xa8, 0xa9: // The last ones end the line breaks of Unicode.
			n++
		case ' ', '\t':
			if i > 0 && (document[i-1] == '-' || document[i-1] == '?') {
				n++
			}
		}
	}
	return n
}

// expandedSize returns the bytes of a node once its aliases are expanded, or a number above
// maxExpanded. known has the sizes of the nodes visited so far.
func expandedSize(n *yamlnode.Node, known map[*yamlnode.Node]int) int {
	if n == nil {
		return 0
	}
	if size, ok := known[n]; ok {
		return size
	}
	known[n] = maxExpanded + 1 // An alias that contains itself would never end.
	size := len(n.Value) + 1 + expandedSize(n.Alias, known)
	for _, child := range n.Content {
		size = min(size+expandedSize(child, known), maxExpanded+1)
	}
	known[n] = size
	return size
}

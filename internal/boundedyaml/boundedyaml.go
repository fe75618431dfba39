// Package boundedyaml converts YAML of other authors to JSON. A YAML document of a few lines can
// stand for gigabytes by its aliases, and the parser bounds only their number.
package boundedyaml

import (
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
)

// alias matches each alias of a YAML document, and words in its text that look like one.
var alias = regexp.MustCompile(`\*[0-9A-Za-z_-]`)

// ToJSON converts a YAML document to JSON. It is an error if the document has more than 1000
// aliases, or more than 3 MiB once they are expanded.
func ToJSON(document []byte) ([]byte, error) {
	switch count := len(alias.FindAllIndex(document, maxAliases+1)); {
	case count > maxAliases:
		return nil, fmt.Errorf("it has more than %d aliases, or words that begin like one (*a): send JSON", maxAliases)
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

package ownership

import (
	"errors"
	"fmt"
	"regexp"

	yamlnode "gopkg.in/yaml.v3"
	"sigs.k8s.io/yaml"
)

const (
	// maxAliases is how many aliases a YAML document may have, and maxExpanded how many
	// bytes it may have once each alias is replaced by what it stands for. YAML's reader
	// bounds neither the time that aliases take nor the text that they repeat.
	maxAliases  = 1000
	maxExpanded = 3 << 20
)

// alias finds each alias of a YAML document, and words of its text that look like one.
var alias = regexp.MustCompile(`\*[0-9A-Za-z_-]`)

// YAMLToJSON converts a YAML document, unless it has too many aliases or they make it
// too large.
func YAMLToJSON(document []byte) ([]byte, error) {
	switch count := len(alias.FindAllIndex(document, maxAliases+1)); {
	case count > maxAliases:
		return nil, fmt.Errorf("it has more than %d aliases, or words that begin like one (*a): send JSON", maxAliases)
	case count > 0:
		var root yamlnode.Node
		if err := yamlnode.Unmarshal(document, &root); err != nil {
			return nil, err
		}
		if expanded(&root, map[*yamlnode.Node]int{}) > maxExpanded {
			return nil, errors.New("its aliases make it too large")
		}
	}
	return yaml.YAMLToJSON(document)
}

// expanded returns how many bytes a node has once its aliases are replaced, or a number
// above maxExpanded. The sizes of nodes that were met before are known.
func expanded(n *yamlnode.Node, known map[*yamlnode.Node]int) int {
	if n == nil {
		return 0
	}
	if size, ok := known[n]; ok {
		return size
	}
	known[n] = maxExpanded + 1 // An alias within what it stands for has no end.
	size := len(n.Value) + 1 + expanded(n.Alias, known)
	for _, child := range n.Content {
		size = min(size+expanded(child, known), maxExpanded+1)
	}
	known[n] = size
	return size
}

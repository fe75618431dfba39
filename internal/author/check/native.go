package check

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/author/source"
)

// native adds values of other types where Kubernetes wants text.
func (p *Project) native(u *Unit, t *source.Task, n *yaml.Node, path []string, file string) {
	if file == "" {
		file = t.File
	}
	switch n.Kind {
	case yaml.MappingNode:
		for key, value := range source.Pairs(n) {
			p.native(u, t, value, append(slices.Clone(path), key.Value), file)
		}
		return
	case yaml.SequenceNode:
		for _, child := range n.Content {
			p.native(u, t, child, append(slices.Clone(path), "[]"), file)
		}
		return
	}
	if u.Text(n) != nil && len(path) < 8 {
		values, _ := u.Values(n, t)
		for _, v := range values {
			if v.Node.Kind == yaml.MappingNode {
				p.native(u, t, v.Node, path, v.File)
				return
			}
		}
	}
	if wantsText(path) && n.Kind == yaml.ScalarNode {
		p.nativeScalar(u, t, n, path, file)
	}
}

func (p *Project) nativeScalar(u *Unit, t *source.Task, n *yaml.Node, path []string, file string) {
	what, certain := u.scalarType(n, t)
	if what == "" || what == "a text" || what == "None" {
		return
	}
	if what == "bool" {
		what = "a boolean"
	}
	p.addFixable(finding{
		"native-type", errorIf(certain), source.Place(file, n),
		strings.Join(path, ".") + " becomes " + what + ", and Kubernetes wants a text",
		"a template that is the whole value keeps its type since ansible-core 2.19, and the API server refuses the object", "write | string at the end of the expression, or quotes around a literal",
	}, asTextOf(file, n))
}

func (u *Unit) scalarType(n *yaml.Node, t *source.Task) (string, bool) {
	text := u.Text(n)
	if text == nil {
		return inWords(map[string]string{"!!int": "int", "!!bool": "bool", "!!float": "float"}[n.ShortTag()]), true
	}
	for _, kind := range text.Analysis.Types {
		if what, certain := u.typeOf(kind, t, 0); what != "" && what != "a text" {
			return what, certain
		}
	}
	return "", false
}

// wantsText reports whether the field at the path of an object is a text.
func wantsText(path []string) bool {
	if len(path) < 2 {
		return false
	}
	parent, last := path[len(path)-2], path[len(path)-1]
	switch parent {
	case "data", "stringData", "binaryData":
		return len(path) == 2
	case "labels", "annotations", "matchLabels", "nodeSelector":
		return last != "[]"
	}
	return last == "value" && len(path) >= 3 && path[len(path)-3] == "env"
}

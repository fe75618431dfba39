package check

import (
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/nearest"
)

// handlers adds handlers that are notified and not there. Where a name, or an include, depends on
// variables, nothing is said.
func (p *Project) handlers(u *Unit) {
	if len(u.Unknown) > 0 {
		return
	}
	there := map[string]bool{}
	for _, t := range u.Tasks {
		there[t.Name] = true
		for _, name := range names(t.Keys["listen"]) {
			there[name.Value] = true
		}
		if strings.Contains(t.Name, "{{") {
			return
		}
	}
	for _, t := range u.Tasks {
		for _, name := range names(t.Keys["notify"]) {
			_, plain, ofRole := strings.Cut(name.Value, " : ")
			if !there[name.Value] && !(ofRole && there[plain]) && !strings.Contains(name.Value, "{{") {
				p.add(finding{
					"missing-handler", report.Warning, source.Position{File: t.File, Line: name.Line, Column: name.Column}, "there is no handler " + name.Value + nearest.DidYouMean(name.Value, slices.Sorted(maps.Keys(there))),
					"the task fails once it changes something", "correct the name, or add the handler to handlers/main.yml",
				})
			}
		}
	}
}

// names returns the texts of a keyword that is a text or a list of texts.
func names(n *yaml.Node) []*yaml.Node {
	switch {
	case n == nil:
		return nil
	case n.Kind == yaml.SequenceNode:
		return n.Content
	default:
		return []*yaml.Node{n}
	}
}

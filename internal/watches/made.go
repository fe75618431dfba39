package watches

import (
	"encoding/json"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Field is a field of a watch that a Go program makes.
type Field struct {
	// Name is the field's in watches.yaml, GoName the program's.
	Name, GoName string
	// Value is the value in the file: anything that has a form in JSON.
	Value any
}

// Make returns the watch of the fields, as if they stood in watches.yaml, except that ${VAR} is not
// replaced. custom is the kind of its content, if a program brings that; nil: the fields name a
// role, a playbook or a chart. The error has the type Faults. The first argument names the watch
// there, and GoName the field.
func Make(what string, fields []Field, custom *ContentKind, search Search) (Watch, error) {
	p := &parser{path: what, custom: custom}
	entry := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for i, f := range fields {
		value, err := nodeOf(f.Value)
		if err != nil {
			return Watch{}, Faults{{File: what, Message: f.GoName + ": " + err.Error()}}
		}
		setLine(value, i+1)
		entry.Content = append(entry.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: f.Name, Line: i + 1}, value)
	}
	watch, _ := p.parseWatch(entry, search)
	if len(p.faults) == 0 {
		watch.Line = 0
		return watch, nil
	}
	faults := p.faults.sorted()
	for i := range faults {
		for at, f := range fields {
			if faults[i].Line == at+1 {
				faults[i].Message = f.GoName + ": " + strings.TrimPrefix(faults[i].Message, f.Name+": ")
			}
		}
		faults[i].Line = 0
	}
	return Watch{}, faults
}

// nodeOf returns the value as the parser reads it from a file.
func nodeOf(value any) (*yaml.Node, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("the value has no form in JSON: %w", err)
	}
	var plain any
	if err := utiljson.Unmarshal(text, &plain); err != nil {
		return nil, fmt.Errorf("the value has no form in JSON: %w", err)
	}
	node := &yaml.Node{}
	return node, node.Encode(plain)
}

func setLine(n *yaml.Node, line int) {
	n.Line = line
	for _, child := range n.Content {
		setLine(child, line)
	}
}

// customFields declares the fields of a watch whose content a Go program brings.
func (p *parser) customFields(d *rawWatch) contentFields {
	return contentFields{
		has: "kind of content of its own",
		parsers: map[string]fieldParser{
			"finalizer":               p.finalizer(d),
			"manageStatus":            p.boolean(&d.ManageStatus),
			"blacklist":               p.list(p.blacklisted(d)),
			"watchAnnotationsChanges": p.boolean(&d.WatchAnnotationsChanges),
		},
		complete: func(search Search) {
			search.KindsOnly = true // Nobody but the engine knows where the content is.
			d.Custom, d.MarkUnsafe = p.custom, true
			d.Finalizer = p.buildFinalizer(d, search)
		},
	}
}

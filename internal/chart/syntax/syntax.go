// Package syntax reads templates without evaluating them: which actions, functions and string
// constants a text has. It depends on the parser of text/template alone, not on its engine.
package syntax

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template/parse"
)

const (
	// Opening stands before an action.
	Opening = "{{"
	// Closing stands after an action.
	Closing = "}}"
)

// Text is a template, parsed. Functions need not be known.
type Text struct {
	text string
	root *parse.Tree
	// defined are the templates that the text defines.
	defined map[string]*parse.Tree
}

// Parse parses a text as the engine would.
func Parse(text string) (*Text, error) {
	const name = "gotpl" // Helm's name for the texts that tpl evaluates.
	t := &Text{text: text, root: parse.New(name), defined: map[string]*parse.Tree{}}
	t.root.Mode = parse.SkipFuncCheck
	if _, err := t.root.Parse(text, "", "", t.defined); err != nil {
		return nil, err
	}
	if t.defined[name] == t.root {
		delete(t.defined, name)
	}
	return t, nil
}

// nodes calls visit with each node of the text.
func (t *Text) nodes(visit func(parse.Node)) {
	walk(t.root.Root, visit)
	for _, tree := range t.defined {
		walk(tree.Root, visit)
	}
}

func walk(node parse.Node, visit func(parse.Node)) {
	visit(node)
	branch := func(b *parse.BranchNode) {
		walk(b.Pipe, visit)
		walk(b.List, visit)
		if b.ElseList != nil {
			walk(b.ElseList, visit)
		}
	}
	switch n := node.(type) {
	case *parse.ListNode:
		for _, one := range n.Nodes {
			walk(one, visit)
		}
	case *parse.ActionNode:
		walk(n.Pipe, visit)
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	case *parse.TemplateNode:
		if n.Pipe != nil {
			walk(n.Pipe, visit)
		}
	case *parse.PipeNode:
		for _, command := range n.Cmds {
			walk(command, visit)
		}
	case *parse.CommandNode:
		for _, argument := range n.Args {
			walk(argument, visit)
		}
	case *parse.ChainNode:
		walk(n.Node, visit)
	}
}

// Functions returns the names of the functions that the text calls.
func (t *Text) Functions() (names []string) {
	t.nodes(func(node parse.Node) {
		if n, ok := node.(*parse.IdentifierNode); ok {
			names = append(names, n.Ident)
		}
	})
	return names
}

// Constants returns the string constants in the actions of the text.
func (t *Text) Constants() (texts []string) {
	t.nodes(func(node parse.Node) {
		if n, ok := node.(*parse.StringNode); ok {
			texts = append(texts, n.Text)
		}
	})
	return texts
}

// Action is an action of a text.
type Action struct {
	// Meaning is the same for two actions if and only if they do the same: blanks, comments, trim
	// markers, the quotes of constants, and the content of branches are not in it.
	Meaning string
	// Text is the action as it is written.
	Text string
}

// Actions returns the actions of the text and one for each `define` in it, without comments.
func (t *Text) Actions() (all []Action) {
	for name := range t.defined {
		definition := "define " + strconv.Quote(name)
		all = append(all, Action{definition, Opening + " " + definition + " " + Closing})
	}
	t.nodes(func(node parse.Node) {
		if meaning := meaningOf(node); meaning != "" {
			all = append(all, Action{meaning, t.around(int(node.Position()))})
		}
	})
	return all
}

// meaningOf returns the Meaning of a node that is an action, else "".
func meaningOf(node parse.Node) string {
	branch := func(keyword string, b parse.BranchNode) string {
		if b.ElseList != nil {
			keyword = "else " + keyword
		}
		return keyword + " " + pipe(b.Pipe)
	}
	switch n := node.(type) {
	case *parse.ActionNode:
		return "action " + pipe(n.Pipe)
	case *parse.IfNode:
		return branch("if", n.BranchNode)
	case *parse.RangeNode:
		return branch("range", n.BranchNode)
	case *parse.WithNode:
		return branch("with", n.BranchNode)
	case *parse.TemplateNode:
		return "template " + strconv.Quote(n.Name) + " " + pipe(n.Pipe)
	case *parse.BreakNode, *parse.ContinueNode:
		return n.String()
	}
	return ""
}

// pipe returns a pipeline with each constant quoted in one way.
func pipe(n *parse.PipeNode) string {
	if n == nil {
		return ""
	}
	walk(n, func(node parse.Node) {
		if constant, ok := node.(*parse.StringNode); ok {
			constant.Quoted = strconv.Quote(constant.Text)
		}
	})
	return n.String()
}

// around returns the text of the action at the position.
func (t *Text) around(at int) string {
	start := max(strings.LastIndex(t.text[:at], Opening), 0)
	if end := strings.Index(t.text[at:], Closing); end >= 0 {
		return t.text[start : at+end+len(Closing)]
	}
	return t.text[start:]
}

// variable matches the name of a variable.
var variable = regexp.MustCompile(`\$[\pL_][\pL\pN_]*`)

// Own are the actions of trusted or untrusted texts.
type Own struct{ meanings map[string]bool }

// Learn adds the actions of a text. If the text is not a valid template, such as the first half of one,
// Learn adds the actions that can be parsed alone.
func (o *Own) Learn(text string) {
	if !strings.Contains(text, Opening) {
		return
	}
	if whole, err := Parse(text); err == nil {
		o.add(whole)
		return
	}
	for rest := text; ; {
		start := strings.Index(rest, Opening)
		if start < 0 {
			return
		}
		rest = rest[start:]
		rest = rest[o.learnFirst(rest):]
	}
}

// learnFirst adds the action with which the text begins, and returns its length. A closing brace
// in a constant does not end it.
func (o *Own) learnFirst(text string) int {
	const attempts = 4
	end := 0
	for range attempts {
		next := strings.Index(text[end:], Closing)
		if next < 0 {
			break
		}
		if end += next + len(Closing); o.learnOne(text[:end]) {
			return end
		}
	}
	return len(Opening)
}

// learnOne adds one action, which may be the beginning, the middle or the end of a branch and use
// variables that are set elsewhere. It reports whether there was one.
func (o *Own) learnOne(action string) (found bool) {
	var set strings.Builder
	for _, name := range variable.FindAllString(action, -1) {
		fmt.Fprintf(&set, "{{%s := 0}}", name)
	}
	for _, whole := range []string{action, action + "{{end}}", action + "{{else}}{{end}}", "{{if 0}}" + action + "{{end}}", "{{with 0}}" + action + "{{end}}"} {
		if parsed, err := Parse(set.String() + whole); err == nil {
			o.add(parsed)
			found = true
		}
	}
	return found
}

func (o *Own) add(t *Text) {
	if o.meanings == nil {
		o.meanings = map[string]bool{}
	}
	for _, action := range t.Actions() {
		o.meanings[action.Meaning] = true
	}
}

// Has reports whether an action is in the set.
func (o *Own) Has(action Action) bool { return o.meanings[action.Meaning] }

// Foreign returns the first action of a text that is not in the set; nil if there is none.
func (o *Own) Foreign(t *Text) *Action {
	for _, action := range t.Actions() {
		if !o.Has(action) {
			return &action
		}
	}
	return nil
}

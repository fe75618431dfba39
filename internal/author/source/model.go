package source

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
	"github.com/ensign-operator/ensign/internal/watches"
)

// Position is a place in a file. Line and Column begin with 1; 0 is the file as a whole.
type Position struct {
	File   string
	Line   int
	Column int
}

// Fault is a file or a part of it that cannot be walked.
type Fault struct {
	Position

	Message string
}

// Unit is the content that one watch, or its finalizer, executes.
type Unit struct {
	Watch watches.Watch
	// Finalizing is set for the content of a finalizer of its own.
	Finalizing bool
	// Dir is the role's directory, or the playbook's.
	Dir string
	// Entry is the content for Ansible's own loader, with all files that are included while a
	// run goes on.
	Entry       []reader.Content
	Tasks       []*Task
	Definitions []*Definition
	Texts       []*Text
	Faults      []Fault
	// Missing are includes of files and roles that were not found.
	Missing []Fault
	// Unknown are includes that only a run can find.
	Unknown []Fault
	// Guessed are includes by a name that only a run knows, in whose place all is walked that
	// the name may mean.
	Guessed []Fault
}

// Task is a task, a handler or a `block` of tasks.
type Task struct {
	Position

	Name   string
	Module string
	// Args are the module's arguments: a mapping, a text, or nil.
	Args *yaml.Node
	// Keys are the task's keywords.
	Keys map[string]*yaml.Node
	// Loop is the value of loop or with_…; nil without.
	Loop *yaml.Node
	// With is the plugin of with_…
	With        string
	Collections []string
	// RoleDir is the directory of the task's role, "" in a playbook.
	RoleDir string
	Parent  *Task
	// Unsure is set for a task that a run may skip for another reason than its own keywords and those of
	// its parents. It stands in a handler, a rescue, a role with a condition, or a file whose name is guessed.
	Unsure bool

	collection string
	search     Search
}

// here returns where an absolute path is, and other paths as they are.
func (t *Task) here(path string) string {
	if filepath.IsAbs(path) {
		return t.search.absolute("", path)
	}
	return path
}

// How says how a name is defined.
type How string

// The ways to define a variable.
const (
	Default  How = "a default of the role"
	RoleVar  How = "a variable of the role"
	PlayVar  How = "a variable of the play"
	TaskVar  How = "a variable of the task"
	SetFact  How = "set_fact"
	Register How = "register"
	LoopVar  How = "the loop's variable"
	Included How = "a file of variables"
)

// Definition is a place that defines a variable.
type Definition struct {
	Position

	Name  string
	How   How
	Value *yaml.Node
	// Task is the only task for which the variable is defined there, or the task that defines it; nil if
	// there is none.
	Task *Task
}

// Text is a text that Ansible evaluates.
type Text struct {
	Position

	Value string
	// Bare is set for an expression without braces, as in when.
	Bare bool
	// Where says what has the text: a keyword, "args", "vars", "loop" or "template" for a file.
	Where string
	// Delimiters are those that the task sets for a file.
	Delimiters reader.Delimiters
	Node       *yaml.Node
	Task       *Task
	// Definition is set for the text of a variable.
	Definition *Definition
	Analysis   reader.Analysis
}

// At returns the position of a line of the text.
func (t *Text) At(line int) Position {
	p := t.Position
	switch {
	case t.Node == nil:
		p.Line, p.Column = max(line, 1), 1
	case t.Node.Style&yaml.LiteralStyle != 0 && line > 0:
		p.Line, p.Column = p.Line+line, 1
	}
	return p
}

func (p Position) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// Arg returns an argument of the task by one of its names, nil if it has none.
func (t *Task) Arg(names ...string) *yaml.Node {
	for _, name := range names {
		if value := cmp.Or(Field(t.Args, name), Field(t.Keys["args"], name), t.defaultOf(name)); value != nil {
			return value
		}
	}
	return nil
}

// defaultOf returns the value of an argument in module_defaults of the task, or of a block around
// it. Those for a group of modules are taken for every module of Kubernetes, which the groups are
// of.
func (t *Task) defaultOf(name string) *yaml.Node {
	short := t.Module[strings.LastIndex(t.Module, ".")+1:]
	for ; t != nil; t = t.Parent {
		defaults := follow(t.Keys["module_defaults"])
		if defaults == nil || defaults.Kind != yaml.MappingNode {
			continue
		}
		for i := 0; i+1 < len(defaults.Content); i += 2 {
			key := defaults.Content[i].Value
			group := strings.HasPrefix(key, "group/") && strings.HasPrefix(short, "k8s")
			if value := Field(defaults.Content[i+1], name); value != nil && (group || key[strings.LastIndex(key, ".")+1:] == short) {
				return value
			}
		}
	}
	return nil
}

// Within reports whether the task is other, or is inside other, a `block`.
func (t *Task) Within(other *Task) bool {
	for ; t != nil; t = t.Parent {
		if t == other {
			return true
		}
	}
	return false
}

// Field returns the value of a key, nil if the node is not a mapping or lacks the key.
func Field(n *yaml.Node, key string) *yaml.Node {
	n = follow(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return follow(n.Content[i+1])
		}
	}
	return nil
}

// Key returns the node of a key itself, nil if there is none.
func Key(n *yaml.Node, key string) *yaml.Node {
	n = follow(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i]
		}
	}
	return nil
}

// At returns the key or the element at a path such as spec.users[0].name, or the nearest node. Keys
// may have dots.
func At(n *yaml.Node, path string) *yaml.Node {
	const between = `.[]"`
	at := n
	for path = strings.TrimLeft(path, between); path != "" && n != nil; path = strings.TrimLeft(path, between) {
		n = follow(n)
		var key, next *yaml.Node
		after := ""
		for i := range n.Content {
			name := strconv.Itoa(i)
			if n.Kind == yaml.MappingNode {
				name = n.Content[i&^1].Value
			}
			rest, begins := strings.CutPrefix(path, name)
			if !begins || rest != "" && !strings.ContainsAny(rest[:1], between) || key != nil && len(rest) >= len(after) {
				continue
			}
			key, next, after = n.Content[i], n.Content[i], rest
			if n.Kind == yaml.MappingNode {
				key, next = n.Content[i&^1], n.Content[i|1]
			}
		}
		if key == nil {
			break
		}
		at, n, path = key, next, after
	}
	return at
}

// Scalar returns the text of a scalar, "" for other nodes.
func Scalar(n *yaml.Node) string {
	if n = follow(n); n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// AllText returns the scalars of a node, one in a line.
func AllText(n *yaml.Node) string {
	n = follow(n)
	switch {
	case n == nil:
		return ""
	case n.Kind == yaml.ScalarNode:
		return n.Value + "\n"
	}
	var text strings.Builder
	for _, part := range n.Content {
		text.WriteString(AllText(part))
	}
	return text.String()
}

// True reports whether the node is a boolean that is true.
func True(n *yaml.Node) bool {
	var value bool
	n = follow(n)
	return n != nil && n.Kind == yaml.ScalarNode && n.Decode(&value) == nil && value
}

func follow(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// children returns the nodes below n that the first element of the path means; without a
// path all.
func children(n *yaml.Node, path []string) []*yaml.Node {
	var all []*yaml.Node
	switch n.Kind {
	case yaml.SequenceNode:
		if len(path) == 0 || path[0] == reader.Element {
			return n.Content
		}
	case yaml.MappingNode:
		for k := 0; k+1 < len(n.Content); k += 2 {
			if len(path) == 0 || path[0] == reader.Element || n.Content[k].Value == path[0] {
				all = append(all, n.Content[k+1])
			}
		}
	}
	return all
}

func rest(path []string) []string {
	if len(path) == 0 {
		return nil
	}
	return path[1:]
}

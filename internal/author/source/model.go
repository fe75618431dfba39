package source

import (
	"cmp"
	"fmt"
	"path/filepath"
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
	// Hosts are the literal patterns of hosts of the plays.
	Hosts  []Host
	Faults []Fault
	// Missing are includes of files and roles that were not found.
	Missing []Fault
	// Unknown are includes that only a run can find.
	Unknown []Fault
	// Guessed are includes by a name that only a run knows, in whose place all is walked that
	// the name may mean.
	Guessed []Fault
}

// Host is a name or a pattern of hosts.
type Host struct {
	Position

	Name string
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
		for of, defaults := range Pairs(t.Keys["module_defaults"]) {
			group := strings.HasPrefix(of.Value, "group/") && strings.HasPrefix(short, "k8s")
			if value := Field(defaults, name); value != nil && (group || of.Value[strings.LastIndex(of.Value, ".")+1:] == short) {
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

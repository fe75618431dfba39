package source

import (
	"path/filepath"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/util/sets"
)

// keywords are all keys of a task that are not modules.
//
//nolint:gochecknoglobals // A constant.
var keywords = sets.New(strings.Fields(`action any_errors_fatal args async become become_exe become_flags become_method become_user changed_when
	check_mode collections connection debugger delay delegate_facts delegate_to diff environment failed_when ignore_errors
	ignore_unreachable listen local_action loop loop_control module_defaults name no_log notify poll port register remote_user
	retries run_once tags throttle timeout until vars when block rescue always`)...)

// freeform are modules whose argument may be a text that is not a list of key=value.
//
//nolint:gochecknoglobals // A constant.
var freeform = sets.New(strings.Fields("shell command raw script include_tasks import_tasks include_vars meta win_shell win_command")...)

// Plain returns a module's or filter's name without the collection that every Ansible has.
func Plain(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, "ansible.builtin."), "ansible.legacy.")
}

func (w *walker) taskFile(path string, at place) {
	if !w.once(path) {
		return
	}
	at.base = filepath.Dir(path)
	if root := w.readOne(path); root != nil {
		w.tasks(root, path, at)
	}
}

func (w *walker) tasks(list *yaml.Node, path string, at place) {
	if list == nil || list.Tag == "!!null" {
		return
	}
	if list.Kind != yaml.SequenceNode {
		w.unit.Faults = append(w.unit.Faults, Fault{Place(path, list), describe(list) + "; write a list of tasks"})
		return
	}
	for _, n := range list.Content {
		if n = follow(n); n.Kind == yaml.MappingNode {
			w.task(n, path, at)
		}
	}
}

func (w *walker) task(n *yaml.Node, path string, at place) {
	t := newTask(n, path, at)
	t.search = w.search
	w.unit.Tasks = append(w.unit.Tasks, t)
	w.define(t.Keys["vars"], path, TaskVar, t)
	for key, value := range t.Keys {
		switch key {
		case "block", "rescue", "always", "vars":
		case "when", "until", "failed_when", "changed_when":
			w.expressions(value, path, key, t)
		default:
			w.texts(value, path, key, t, nil)
		}
	}
	if t.Loop != nil {
		w.texts(t.Loop, path, "loop", t, nil)
	}
	w.arguments(t)
	w.defined(t)
	inner := at
	inner.parent, inner.collections = t, t.Collections
	for _, key := range []string{"block", "rescue", "always"} {
		inner.unsure = at.unsure || key == "rescue"
		w.tasks(t.Keys[key], path, inner)
	}
	inner.unsure = at.unsure
	w.includes(t, inner)
}

func newTask(n *yaml.Node, path string, at place) *Task {
	t := &Task{
		Position: Place(path, n), Keys: map[string]*yaml.Node{}, RoleDir: at.roleDir, Parent: at.parent, Unsure: at.unsure || at.handlers,
		Collections: at.collections, collection: at.collection,
	}
	for at, value := range Pairs(n) {
		key := at.Value
		with, isWith := strings.CutPrefix(key, "with_")
		switch {
		case key == "action" || key == "local_action":
			t.Module, t.Args = fromAction(value)
		case key == "loop" || isWith:
			t.Loop, t.With = value, with
			if !isWith {
				t.With = ""
			}
		case keywords.Has(key):
			t.Keys[key] = value
		case t.Module == "":
			t.Module, t.Args = key, value
			t.Line, t.Column = at.Line, at.Column
		}
	}
	t.Name = Scalar(t.Keys["name"])
	t.Collections = append(scalars(t.Keys["collections"]), t.Collections...)
	t.Args = arguments(t.Module, t.Args, t.Keys["args"])
	return t
}

func fromAction(value *yaml.Node) (string, *yaml.Node) {
	if value.Kind == yaml.MappingNode {
		return Scalar(value, "module"), value
	}
	module, rest, _ := strings.Cut(strings.TrimSpace(value.Value), " ")
	return module, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: rest, Line: value.Line, Column: value.Column}
}

var pair = regexp.MustCompile(`(\w+)=("[^"]*"|'[^']*'|(?:\{\{.*?\}\}|[^\s{]|\{)+)`)

// arguments returns a module's arguments as a mapping, where they are key=value or below args.
func arguments(module string, value, more *yaml.Node) *yaml.Node {
	if value == nil || value.Kind != yaml.ScalarNode || value.Tag == "!!null" {
		if value == nil || value.Kind == yaml.ScalarNode {
			return more
		}
		return value
	}
	if freeform.Has(Plain(module)) {
		return value
	}
	found := pair.FindAllStringSubmatch(value.Value, -1)
	if found == nil {
		return value
	}
	made := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: value.Line, Column: value.Column}
	for _, f := range found {
		for _, text := range []string{f[1], strings.Trim(f[2], `"'`)} {
			made.Content = append(made.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Line: value.Line, Column: value.Column})
		}
	}
	if more != nil && more.Kind == yaml.MappingNode {
		made.Content = append(made.Content, more.Content...)
	}
	return made
}

func (w *walker) arguments(t *Task) {
	module := Plain(t.Module)
	switch {
	case module == "assert" && t.Args != nil && t.Args.Kind == yaml.MappingNode:
		for key, value := range Pairs(t.Args) {
			if key.Value == "that" {
				w.expressions(value, t.File, "that", t)
			} else {
				w.texts(value, t.File, "args", t, nil)
			}
		}
	case module == "debug" && t.Arg("var") != nil:
		w.expressions(t.Arg("var"), t.File, "var", t)
	default:
		w.texts(t.Args, t.File, "args", t, nil)
	}
}

// defined adds the variables that a task makes.
func (w *walker) defined(t *Task) {
	if name := t.Keys["register"]; Scalar(name) != "" {
		w.add(&Definition{Place(t.File, name), name.Value, Register, nil, t})
	}
	for _, key := range []string{"loop_var", "index_var"} {
		if name := Field(t.Keys["loop_control"], key); Scalar(name) != "" {
			w.add(&Definition{Place(t.File, name), name.Value, LoopVar, nil, t})
		}
	}
	if Plain(t.Module) == "set_fact" {
		w.define(t.Args, t.File, SetFact, nil)
		for _, d := range w.unit.Definitions {
			if d.How == SetFact && d.Task == nil {
				d.Task = t
			}
		}
	}
}

func (w *walker) add(d *Definition) { w.unit.Definitions = append(w.unit.Definitions, d) }

// define adds the variables of a mapping.
func (w *walker) define(n *yaml.Node, file string, how How, task *Task) {
	for key, value := range Pairs(n) {
		if how == SetFact && key.Value == "cacheable" || strings.Contains(key.Value, "{{") {
			continue
		}
		d := &Definition{Place(file, key), key.Value, how, value, task}
		w.add(d)
		if how != SetFact { // Those texts are the task's arguments.
			w.texts(value, file, "vars", task, d)
		}
	}
}

// texts adds all texts with templates at and below the node.
func (w *walker) texts(n *yaml.Node, file, where string, task *Task, definition *Definition) {
	n = follow(n)
	switch {
	case n == nil:
	case n.Kind == yaml.ScalarNode && (strings.Contains(n.Value, "{{") || strings.Contains(n.Value, "{%")) && n.Tag != "!unsafe":
		w.unit.Texts = append(w.unit.Texts, &Text{
			Position: Place(file, n), Value: n.Value, Where: where, Node: n, Task: task, Definition: definition,
		})
	case n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode:
		for _, child := range n.Content {
			w.texts(child, file, where, task, definition)
		}
	}
}

// expressions adds conditions: an expression or a list of some.
func (w *walker) expressions(n *yaml.Node, file, where string, task *Task) {
	switch {
	case n == nil:
	case n.Kind == yaml.SequenceNode:
		for _, child := range n.Content {
			w.expressions(follow(child), file, where, task)
		}
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && n.Value != "":
		// Elsewhere in a condition, delimiters are a fault, or stand in a text in quotes.
		text := strings.TrimSpace(n.Value)
		template := strings.Contains(text, "{%") || strings.HasPrefix(text, "{{") && strings.HasSuffix(text, "}}") && strings.Count(text, "{{") == 1
		w.unit.Texts = append(w.unit.Texts, &Text{
			Position: Place(file, n), Value: n.Value, Bare: !template, Where: where, Node: n, Task: task,
		})
	}
}

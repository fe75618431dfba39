package source

import (
	"cmp"
	"fmt"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
)

// maxDepth ends definitions that refer to each other in a circle.
const maxDepth = 12

// maxVisits ends a search that leads to too much.
const maxVisits = 500

// maxSteps ends all searches of a unit: definitions that repeat each other in many roles lead to
// more than any project needs, and take minutes.
const maxSteps = 500_000

// Value is a node that a variable may stand for. Parent is the mapping that has it.
type Value struct {
	Node, Parent *yaml.Node
	// File has the node.
	File string
}

// Source is a value of the custom resource.
type Source struct {
	// Name is the variable, and Path the part of it.
	Name string
	Path []string
	// Filters are the filters that the value went through on its way.
	Filters []string
}

// Index must be called when all texts have their analyses.
func (u *Unit) Index() *Index {
	i := &Index{unit: u, found: map[string][]Source{}, texts: map[*yaml.Node]*Text{}, definitions: map[string][]*Definition{}}
	for _, t := range u.Texts {
		if t.Node != nil {
			i.texts[t.Node] = t
		}
	}
	for _, d := range u.Definitions {
		i.definitions[d.Name] = append(i.definitions[d.Name], d)
	}
	return i
}

// Index finds the values of variables.
type Index struct {
	unit        *Unit
	texts       map[*yaml.Node]*Text
	definitions map[string][]*Definition
	found       map[string][]Source // by the request of Sources
	steps       int                 // of all searches for sources
	// FromCR reports whether the name is a variable of the custom resource, which the content
	// may define too.
	FromCR func(name string, defined []*Definition) bool
}

// Defined returns the places that define a name for a task.
func (i *Index) Defined(name string, task *Task) []*Definition {
	var found []*Definition
	for _, d := range i.definitions[name] {
		if d.How != TaskVar || d.Task == nil || task.Within(d.Task) {
			found = append(found, d)
		}
	}
	return found
}

// Text returns the text of a node, nil if it has no template.
func (i *Index) Text(n *yaml.Node) *Text { return i.texts[follow(n)] }

// Sources returns the values of the custom resource that get into the flow.
func (i *Index) Sources(flow reader.Flow, task *Task) []Source {
	if flow.Name == "" {
		return nil
	}
	key := fmt.Sprintf("%p %q %q %q", scope(task), flow.Name, flow.Path, flow.Filters)
	found, known := i.found[key]
	if !known {
		found = i.sources(flow, task, visits{})
		i.found[key] = found
	}
	return slices.Clone(found)
}

// scope returns the innermost task around a task that has a loop or variables, nil if none has:
// for all tasks with the same scope a name means the same.
func scope(task *Task) *Task {
	for t := task; t != nil; t = t.Parent {
		if t.Loop != nil || t.Keys["vars"] != nil {
			return t
		}
	}
	return nil
}

// visits are the definitions that were followed, with the path and the filters: set_fact may
// define a variable by itself.
type visits map[string]bool

func (v visits) first(n *yaml.Node, path, filters []string) bool {
	if len(v) > maxVisits {
		return false
	}
	key := fmt.Sprintf("%p %q %q", n, path, filters)
	if v[key] {
		return false
	}
	v[key] = true
	return true
}

func (i *Index) sources(flow reader.Flow, task *Task, seen visits) []Source {
	if loop, looping := loopOf(flow.Name, task); looping {
		return i.below(loop.Loop, loopPath(loop, flow.Path), flow.Filters, loop.Parent, seen)
	}
	defined := i.Defined(flow.Name, task)
	if i.FromCR(flow.Name, defined) {
		return []Source{{flow.Name, flow.Path, flow.Filters}}
	}
	var found []Source
	for _, d := range defined {
		context := task
		if d.Task != nil {
			context = d.Task
		}
		found = append(found, i.below(d.Value, flow.Path, flow.Filters, context, seen)...)
	}
	return found
}

// below returns the sources of the texts at the path below the node.
func (i *Index) below(n *yaml.Node, path, filters []string, task *Task, seen visits) []Source {
	n = follow(n)
	if i.steps++; i.steps > maxSteps || n == nil || !seen.first(n, path, filters) {
		return nil
	}
	if text := i.texts[n]; text != nil {
		var found []Source
		for _, output := range text.Analysis.Outputs {
			for _, flow := range output.Flows {
				if flow.Name == "" {
					continue
				}
				if text.Analysis.Whole {
					flow.Path = slices.Concat(flow.Path, path)
				}
				if len(flow.Path) > maxDepth {
					continue
				}
				flow.Filters = union(flow.Filters, filters)
				found = append(found, i.sources(flow, task, seen)...)
			}
		}
		return found
	}
	var found []Source
	for _, child := range children(n, path) {
		found = append(found, i.below(child, rest(path), filters, task, seen)...)
	}
	return found
}

// union returns the elements of a or b, each once and sorted: only the filters that a value went
// through count.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// loopOf returns the task whose loop the name is the variable of.
func loopOf(name string, task *Task) (*Task, bool) {
	for t := task; t != nil; t = t.Parent {
		if t.Loop == nil {
			continue
		}
		if cmp.Or(Scalar(t.Keys["loop_control"], "loop_var"), "item") == name {
			return t, true
		}
	}
	return nil, false
}

// loopPath is the path of the loop's variable in the value that is looped over.
func loopPath(loop *Task, path []string) []string {
	if loop.With == "dict" {
		return slices.Concat([]string{reader.Element}, rest(path))
	}
	return slices.Concat([]string{reader.Element}, path)
}

// Values returns the nodes that the node may stand for: itself, or the nodes that define the variable
// in its template. known is false where only a run knows that.
func (i *Index) Values(n *yaml.Node, task *Task) (found []Value, known bool) {
	return i.values(Value{Node: n}, nil, task, 0)
}

// FlowValues is Values for a flow.
func (i *Index) FlowValues(flow reader.Flow, task *Task) ([]Value, bool) {
	return i.flowValues(flow, task, 0)
}

func (i *Index) flowValues(flow reader.Flow, task *Task, depth int) ([]Value, bool) {
	if len(flow.Filters) > 0 || flow.Name == "" || depth > maxDepth {
		return nil, false
	}
	if flow.Name == "role_path" && len(flow.Path) == 0 && task != nil && task.RoleDir != "" {
		return []Value{{Node: literal(task.RoleDir), File: task.File}}, true
	}
	if loop, looping := loopOf(flow.Name, task); looping {
		return i.values(Value{Node: loop.Loop, File: loop.File}, loopPath(loop, flow.Path), loop.Parent, depth)
	}
	defined := i.Defined(flow.Name, task)
	if len(defined) == 0 || i.FromCR(flow.Name, []*Definition{{How: RoleVar}}) {
		return nil, false
	}
	var found []Value
	for _, d := range defined {
		if d.Value == nil {
			return nil, false
		}
		values, known := i.values(Value{Node: d.Value, File: d.File}, flow.Path, task, depth)
		if !known {
			return nil, false
		}
		found = append(found, values...)
	}
	return found, true
}

func (i *Index) values(v Value, path []string, task *Task, depth int) ([]Value, bool) {
	v.Node = follow(v.Node)
	if v.Node == nil {
		return nil, false
	}
	if text := i.texts[v.Node]; text != nil {
		if list := literalList(text); list != nil {
			return i.values(Value{Node: list, File: v.File}, path, task, depth+1)
		}
		if flows := wholeFlows(text); len(flows) == 1 && text.Analysis.Outputs[0].Value.Parts == nil {
			flows[0].Path = slices.Concat(flows[0].Path, path)
			return i.flowValues(flows[0], task, depth+1)
		}
		return nil, false
	}
	if len(path) == 0 {
		return []Value{v}, true
	}
	var found []Value
	for _, child := range children(v.Node, path) {
		values, known := i.values(Value{child, v.Node, v.File}, path[1:], task, depth)
		if !known {
			return nil, false
		}
		found = append(found, values...)
	}
	return found, len(found) > 0
}

// wholeFlows returns copies of the flows of a text that is one expression.
func wholeFlows(t *Text) []reader.Flow {
	if !t.Analysis.Whole || len(t.Analysis.Outputs) != 1 {
		return nil
	}
	return slices.Clone(t.Analysis.Outputs[0].Flows)
}

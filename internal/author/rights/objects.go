package rights

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// Object is an object that a task or a lookup reads or writes at the API server.
type Object struct {
	source.Position

	APIVersion, Kind string
	// Name and Namespace are nil where the content gives none.
	Name, Namespace *yaml.Node
	// Generated is set where the API server makes up the name.
	Generated bool
	// Disowned is set where the owner references are empty, and no annotation keeps the object when its owner goes.
	Disowned bool
	// Template is set for an object in a template's text, of which no more is known.
	Template bool
}

// keep is the annotation of an object that outlives its owner.
const keep = "helm.sh/resource-policy"

// maxDepth ends variables that refer to each other in a circle.
const maxDepth = 8

// collections are those whose modules are read.
var collections = regexp.MustCompile(`^(kubernetes\.core|community\.kubernetes|community\.okd|redhat\.openshift|ensign\.operator|operator_sdk\.util)\.(\w+)$`)

// Module returns a module's name without its collection, if it is one that talks to the API
// server and is known here; else "".
func Module(t *source.Task) string {
	if found := collections.FindStringSubmatch(t.Module); found != nil {
		return found[2]
	}
	if t.Module == "k8s" || strings.HasPrefix(t.Module, "k8s_") {
		return t.Module
	}
	return ""
}

// Definition returns the argument with whole objects; nil without.
func Definition(t *source.Task) *yaml.Node {
	return t.Arg("definition", "resource_definition", "inline")
}

// Objects returns the objects of a task. known is false where some can't be told.
func Objects(i *source.Index, t *source.Task) (found []Object, known bool) {
	definition, kind := Definition(t), t.Arg("kind")
	switch {
	case definition != nil:
		found, known = ofDefinition(i, definition, t, 0)
	case t.Arg("src") != nil || t.Arg("template") != nil:
		found, known = ofFiles(i, t)
	case kind != nil:
		found, known = pairs(i, kind, t.Arg("api_version", "api", "version"), t)
	default:
		return nil, false
	}
	if definition != nil && kind != nil && Module(t) == "k8s_require_owned" { // It takes both.
		others, all := pairs(i, kind, t.Arg("api_version", "api", "version"), t)
		found, known = append(found, others...), known && all
	}
	for n := range found {
		if found[n].Namespace == nil && !found[n].Template {
			found[n].Namespace = t.Arg("namespace")
		}
		if found[n].Name == nil && !found[n].Template {
			found[n].Name = t.Arg("name")
		}
	}
	return found, known
}

func ofDefinition(i *source.Index, n *yaml.Node, t *source.Task, depth int) (found []Object, known bool) {
	if text := i.Text(n); text != nil && !text.Analysis.Whole {
		objects := InText(text.Value, t.Position)
		return objects, len(objects) > 0
	}
	if text := i.Text(n); text != nil {
		if names, known, looks := lookedUp(i, text, t, "template", "file"); looks {
			found, all := inFiles(t, names)
			return found, known && all
		}
	}
	values, known := i.Values(n, t)
	if text := i.Text(n); text != nil && !known && depth < maxDepth {
		return ofVariables(i, text, t, depth+1)
	}
	for _, v := range values {
		objects, all := ofValue(i, v.Node, t, depth)
		found, known = append(found, objects...), known && all
	}
	return found, known
}

func ofValue(i *source.Index, n *yaml.Node, t *source.Task, depth int) (found []Object, known bool) {
	known = true
	switch n.Kind {
	case yaml.MappingNode:
		return ofMapping(i, n, t, depth)
	case yaml.ScalarNode:
		found = InText(n.Value, t.Position)
	case yaml.SequenceNode:
		for _, element := range n.Content {
			objects, all := ofDefinition(i, element, t, depth)
			found, known = append(found, objects...), known && all
		}
	}
	return found, known
}

// ofVariables returns the objects of the variables of a text, such as one that has a template's
// objects, or a loop over them.
func ofVariables(i *source.Index, text *source.Text, t *source.Task, depth int) (found []Object, known bool) {
	known = true
	for _, output := range text.Analysis.Outputs {
		for _, flow := range output.Flows {
			nodes := i.Behind(flow.Name, t)
			known = known && nodes != nil
			for _, n := range nodes {
				objects, all := ofDefinition(i, n, t, depth)
				found, known = append(found, objects...), known && all
			}
		}
	}
	return found, known && len(found) > 0
}

func ofMapping(i *source.Index, n *yaml.Node, t *source.Task, depth int) ([]Object, bool) {
	kind, version := source.Field(n, "kind"), source.Field(n, "apiVersion")
	if items := source.Field(n, "items"); source.Items(items) != nil && strings.HasSuffix(source.Scalar(kind), "List") {
		return ofDefinition(i, items, t, depth)
	}
	// The task may say it, beside a part of the object.
	found, known := pairs(i, cmp.Or(kind, t.Arg("kind")), cmp.Or(version, t.Arg("api_version", "api", "version")), t)
	for k := range found {
		metadata := source.Field(n, "metadata")
		found[k].Name, found[k].Namespace = source.Field(metadata, "name"), source.Field(metadata, "namespace")
		owners := source.Field(metadata, "ownerReferences")
		found[k].Disowned = owners != nil && (owners.Tag == "!!null" || owners.Tag == "!!seq" && len(owners.Content) == 0) && source.Field(metadata, "annotations", keep) == nil
		found[k].Generated = source.Field(metadata, "generateName") != nil
	}
	return found, known
}

// pairs returns the objects of a kind and an API version that are literal, or that variables
// with literal values stand for. Where both come from the same mapping, or from the same file of a role's
// variables, they belong together.
func pairs(i *source.Index, kind, version *yaml.Node, t *source.Task) ([]Object, bool) {
	if kind == nil {
		return nil, false
	}
	kinds, known := i.Values(kind, t)
	if !known {
		return nil, false
	}
	versions := []source.Value{{Node: &yaml.Node{Kind: yaml.ScalarNode, Value: "v1"}}}
	if version != nil {
		if versions, known = i.Values(version, t); !known {
			return nil, false
		}
	}
	return combine(kinds, versions, t.Position), true
}

func combine(kinds, versions []source.Value, at source.Position) []Object {
	var found []Object
	for _, k := range kinds {
		for _, v := range versions {
			if k.Parent != nil && v.Parent != nil && k.Parent != v.Parent || apart(k, v, kinds, versions) {
				continue
			}
			o := Object{Position: at, APIVersion: source.Scalar(v.Node), Kind: source.Scalar(k.Node)}
			if !slices.Contains(found, o) {
				found = append(found, o)
			}
		}
	}
	return found
}

// apart reports whether a kind and a version are variables of different files, of which each has both.
func apart(kind, version source.Value, kinds, versions []source.Value) bool {
	has := func(all []source.Value, file string) bool {
		return slices.ContainsFunc(all, func(v source.Value) bool { return v.File == file && v.Parent == nil })
	}
	return kind.File != "" && version.File != "" && kind.File != version.File && kind.Parent == nil && version.Parent == nil && has(versions, kind.File) && has(kinds, version.File)
}

// lookedUp returns the names of the files that a text looks up by the plugins; looks is false if
// it does not.
func lookedUp(i *source.Index, t *source.Text, task *source.Task, plugins ...string) (names []string, known, looks bool) {
	known = true
	for _, l := range t.Analysis.Lookups {
		if slices.Contains(plugins, source.Plain(l.Plugin)) && len(l.Terms) > 0 {
			found, all := i.TermNames(l.Terms[0], task)
			names, known, looks = append(names, found...), known && all, true
		}
	}
	return names, known, looks
}

func ofFiles(i *source.Index, t *source.Task) ([]Object, bool) {
	names, known := Paths(i, cmp.Or(t.Arg("template"), t.Arg("src")), t)
	found, all := inFiles(t, names)
	return found, known && all
}

// Paths returns the names of an argument: a text, a mapping with a path, or a list of these.
func Paths(i *source.Index, n *yaml.Node, t *source.Task) (names []string, known bool) {
	if path := source.Field(n, "path"); path != nil {
		return i.Names(path, t)
	}
	elements := source.Items(n)
	if elements == nil {
		return i.Names(n, t)
	}
	known = true
	for _, element := range elements {
		found, all := Paths(i, element, t)
		names, known = append(names, found...), known && all
	}
	return names, known
}

func inFiles(t *source.Task, names []string) (found []Object, known bool) {
	known = len(names) > 0
	for _, name := range names {
		if name == "" {
			continue
		}
		files := source.FindFiles(t, "templates", name)
		if files == nil {
			files = source.FindFiles(t, "files", name)
		}
		known = known && len(files) > 0
		for _, path := range files {
			text, err := os.ReadFile(path)
			objects := InText(string(text), source.Position{File: path, Line: 1, Column: 1})
			known = known && err == nil && len(objects) > 0
			found = append(found, objects...)
		}
	}
	return found, known
}

// lookupObjects returns the objects of a lookup of kubernetes.core.k8s.
func lookupObjects(i *source.Index, l reader.Lookup, t *source.Text) ([]Object, bool) {
	kinds, known := valuesOf(i, l.Options["kind"], t.Task)
	if !known || len(kinds) == 0 {
		return nil, false
	}
	versions := []source.Value{{Node: &yaml.Node{Kind: yaml.ScalarNode, Value: "v1"}}}
	if option, given := l.Options["api_version"]; given {
		if versions, known = valuesOf(i, option, t.Task); !known {
			return nil, false
		}
	}
	return combine(kinds, versions, t.At(l.Line)), true
}

func valuesOf(i *source.Index, v reader.Value, t *source.Task) ([]source.Value, bool) {
	if v.IsLiteral {
		text, ok := v.Literal.(string)
		return []source.Value{{Node: &yaml.Node{Kind: yaml.ScalarNode, Value: text}}}, ok
	}
	if len(v.Flows) != 1 {
		return nil, false
	}
	return i.FlowValues(v.Flows[0], t)
}

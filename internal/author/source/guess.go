package source

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// simple is a template that has only a variable or a part of it.
var simple = regexp.MustCompile(`^\{\{\s*(\w+)((?:\.\w+|\[["']\w+["']\])*)\s*\}\}$`)

// choices are templates that are one of two literal texts; withDefault is a variable with a
// literal default.
//
//nolint:gochecknoglobals // Constants.
var (
	choices = []*regexp.Regexp{
		regexp.MustCompile(`(?s)^\{\{\s*["']([^"']*)["']\s+if\s.+\selse\s+["']([^"']*)["']\s*\}\}$`),
		regexp.MustCompile(`(?s)^\{\{.+\|\s*ternary\(\s*["']([^"']*)["']\s*,\s*["']([^"']*)["']\s*\)\s*\}\}$`),
	}
	withDefault = regexp.MustCompile(`^\{\{([^|]*)\|\s*(?:default|d)\(\s*["']([^"']*)["'][^|]*\)\s*\}\}$`)
)

var key = regexp.MustCompile(`\w+`)

// substituted returns the possible texts with the values of its variables, and Any for those that
// only a run knows. known is false for these, and for defaults, which a resource may change.
func (w *walker) substituted(text string, t *Task, depth int) (names []string, known bool) {
	if strings.Contains(text, "{%") || depth > maxDepth {
		return []string{Any}, false
	}
	between := braces.Split(text, -1)
	names, known = []string{between[0]}, true
	for k, use := range braces.FindAllString(text, -1) {
		values, all := w.valuesOf(use, t, depth)
		if !all {
			values = append(values, Any)
		}
		names, known = product(product(names, values), []string{between[k+1]}), known && all
	}
	return distinct(names), known
}

// valuesOf returns the texts that the variable of a template may have.
func (w *walker) valuesOf(use string, t *Task, depth int) (values []string, known bool) {
	for _, choice := range choices {
		if match := choice.FindStringSubmatch(use); match != nil {
			return match[1:], true
		}
	}
	if match := withDefault.FindStringSubmatch(use); match != nil {
		values, _ = w.valuesOf("{{"+match[1]+"}}", t, depth+1)
		return append(values, match[2]), false
	}
	match := simple.FindStringSubmatch(use)
	if match == nil {
		return nil, false
	}
	switch {
	case match[1] == "role_path" && t.RoleDir != "":
		return []string{t.RoleDir}, true
	case match[1] == "playbook_dir" && w.inPlaybook:
		return []string{w.unit.Dir}, true
	}
	nodes, known := w.nodesOf(match[1], t, depth)
	texts, all := w.textsOf(nodes, key.FindAllString(match[2], -1), t, depth)
	return texts, known && all
}

// textsOf returns the texts at a path below nodes.
func (w *walker) textsOf(nodes []*yaml.Node, path []string, t *Task, depth int) (values []string, known bool) {
	known = true
	for _, n := range nodes {
		for _, part := range path {
			n = Field(n, part)
		}
		switch text := Scalar(n); {
		case text == "": // An element of a loop without the key, or no text.
		case templated(text):
			more, all := w.substituted(text, t, depth+1)
			values, known = append(values, more...), known && all
		default:
			values = append(values, text)
		}
	}
	return values, known && len(values) > 0
}

// nodesOf returns the values of a variable: of the elements of its loop, or its definitions.
func (w *walker) nodesOf(name string, t *Task, depth int) (nodes []*yaml.Node, known bool) {
	if loop, looping := loopOf(name, t); looping {
		return w.elements(loop.Loop, loop, depth)
	}
	known = true
	for _, d := range w.unit.Definitions {
		if d.Name != name || d.How == TaskVar && d.Task != nil && !t.Within(d.Task) && !strings.Contains(d.Task.Module, "include") {
			continue
		}
		known = known && d.Value != nil && d.How != Default
		nodes = append(nodes, d.Value)
	}
	return nodes, known && len(nodes) > 0
}

// elements returns those of a list, or of a variable with one.
func (w *walker) elements(n *yaml.Node, t *Task, depth int) (nodes []*yaml.Node, known bool) {
	switch n = follow(n); {
	case n == nil || depth > maxDepth:
		return nil, false
	case n.Kind == yaml.SequenceNode:
		known = true
		for _, element := range n.Content {
			if element = follow(element); element.Kind == yaml.SequenceNode { // with_items takes lists of lists.
				more, all := w.elements(element, t, depth+1)
				nodes, known = append(nodes, more...), known && all
			} else {
				nodes = append(nodes, element)
			}
		}
		return nodes, known
	}
	match := simple.FindStringSubmatch(strings.TrimSpace(Scalar(n)))
	if match == nil || match[2] != "" {
		return nil, false
	}
	lists, known := w.nodesOf(match[1], outside(t), depth+1)
	for _, list := range lists {
		more, all := w.elements(list, t, depth+1)
		nodes, known = append(nodes, more...), known && all
	}
	return nodes, known
}

// outside is the task without its own loop, whose list is evaluated before.
func outside(t *Task) *Task {
	other := *t
	other.Loop = nil
	return &other
}

// guessTasks walks the files that a name with templates may mean.
func (w *walker) guessTasks(t *Task, name string, at place, whenRun bool) {
	dirs := taskDirs(at)
	names, known := w.substituted(name, t, 0)
	var paths []string
	for _, name := range names {
		if path := w.firstFile(dirs, name); path != "" {
			paths = append(paths, path)
		} else {
			paths = append(paths, filesLike(dirs, t.here(name), extensions[:2]...)...)
		}
	}
	paths = slices.DeleteFunc(distinct(paths), func(path string) bool { return path == t.File })
	w.guessed(t, "the file "+name, paths, known)
	at.unsure = at.unsure || len(paths) > 1 || !known
	for _, path := range paths {
		w.included(path, at, whenRun)
	}
}

// guessVariables reads the files of variables that a name with templates may mean.
func (w *walker) guessVariables(t *Task, name string) {
	names, _ := w.substituted(name, t, 0)
	for _, name := range names {
		for _, path := range FindFiles(t, "vars", name) {
			w.variableFile(path, Included)
		}
	}
}

// filesLike returns the files that a name with Any means, in the first of the directories that has
// some with one of the extensions; none are all.
func filesLike(dirs []string, name string, extensions ...string) []string {
	if !strings.Contains(name, Any) {
		return nil
	}
	if filepath.IsAbs(name) {
		dirs = []string{""}
	}
	for _, dir := range dirs {
		found, err := filepath.Glob(filepath.Join(dir, name))
		found = slices.DeleteFunc(found, func(path string) bool {
			return regular(path) == "" || len(extensions) > 0 && !slices.Contains(extensions, filepath.Ext(path))
		})
		if err == nil && len(found) > 0 {
			return found
		}
	}
	return nil
}

// guessRoles walks the roles that a name with templates may mean.
func (w *walker) guessRoles(t *Task, name string, at place, whenRun bool) {
	names, known := w.substituted(name, t, 0)
	var dirs []string
	for _, name := range names {
		dirs = append(dirs, w.rolesLike(name, at)...)
	}
	dirs = slices.DeleteFunc(distinct(dirs), func(dir string) bool { return dir == at.roleDir })
	w.guessed(t, "the role "+name, dirs, known)
	at.unsure = at.unsure || len(dirs) > 1 || !known
	for _, dir := range dirs {
		role := *t
		role.Args = withName(t.Args, dir)
		if collection := w.collectionIn(dir); collection != "" {
			role.Args = withName(t.Args, collection+"."+filepath.Base(dir))
		}
		w.includeRole(&role, Scalar(role.Arg("name")), at, whenRun)
	}
}

// withName returns the arguments with another name.
func withName(args *yaml.Node, name string) *yaml.Node {
	made := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: args.Line, Column: args.Column, Content: []*yaml.Node{literal("name"), literal(name)}}
	made.Content = append(made.Content, args.Content...)
	return made
}

// collectionIn returns the collection that has the directory of a role, "" if none.
func (w *walker) collectionIn(dir string) string {
	for _, tree := range w.search.Trees {
		if below, err := filepath.Rel(tree, dir); err == nil && !strings.HasPrefix(below, "..") {
			parts := strings.Split(below, string(filepath.Separator))
			return strings.Join(parts[:min(2, len(parts))], ".")
		}
	}
	return ""
}

// rolesLike returns the directories of the roles that a name with Any means: of a collection,
// or in the first directory of the project that has some.
func (w *walker) rolesLike(name string, from place) []string {
	if !strings.Contains(name, Any) {
		dir, _ := w.findRole(name, from)
		return nonEmpty(dir)
	}
	if parts := strings.Split(name, "."); len(parts) == 3 && !strings.Contains(parts[0]+parts[1], Any) {
		for _, tree := range w.search.Trees {
			if found := rolesAt(filepath.Join(tree, parts[0], parts[1], "roles", parts[2])); len(found) > 0 {
				return found
			}
		}
		return nil
	}
	if filepath.IsAbs(name) {
		return rolesAt(w.search.absolute("", name))
	}
	for _, dir := range w.roleParents(from) {
		if below, err := filepath.Rel(w.search.Dir, dir); err != nil || strings.HasPrefix(below, "..") {
			continue
		}
		if found := rolesAt(filepath.Join(dir, name)); len(found) > 0 {
			return found
		}
	}
	return nil
}

func rolesAt(pattern string) []string {
	found, _ := filepath.Glob(pattern) // A pattern that is none has no roles.
	return slices.DeleteFunc(found, func(dir string) bool {
		return mainFiles(filepath.Join(dir, "tasks"), "main") == nil && mainFiles(filepath.Join(dir, "meta"), "main") == nil
	})
}

// guessPart walks the files of a role that tasks_from with templates may mean.
func (w *walker) guessPart(t *Task, dir, collection string, parts roleParts, at place) {
	names, known := w.substituted(parts.tasks, t, 0)
	tasks := filepath.Join(dir, "tasks")
	var paths []string
	for _, name := range names {
		if strings.Contains(name, Any) {
			paths = append(paths, filesLike([]string{tasks}, trimExtension(name)+".*", extensions[:2]...)...)
		} else {
			paths = append(paths, mainFiles(tasks, trimExtension(name))...)
		}
	}
	w.guessed(t, "the file "+parts.tasks+" of the role "+filepath.Base(dir), paths, known)
	for _, path := range paths {
		from := parts
		from.tasks = filepath.Base(path)
		w.role(dir, collection, from, at)
	}
}

// guessed notes which files or roles are walked in place of a name that only a run knows.
func (w *walker) guessed(t *Task, what string, paths []string, known bool) {
	switch {
	case len(paths) == 0:
		w.unit.Unknown = append(w.unit.Unknown, Fault{t.Position, what + " is known in a run only"})
	case !known:
		names := make([]string, len(paths))
		for n, path := range paths {
			names[n] = strings.TrimPrefix(path, w.search.Dir+"/")
		}
		slices.Sort(names)
		w.unit.Guessed = append(w.unit.Guessed, Fault{t.Position, what + " depends on a variable; all that match are checked: " + strings.Join(names, ", ")})
	}
}

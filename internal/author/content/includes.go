package content

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
)

// includes walks what a task includes or imports.
func (w *walker) includes(t *Task, at place) {
	at.base = filepath.Dir(t.File)
	switch module := Plain(t.Module); module {
	case "include_tasks", "import_tasks":
		for _, name := range w.names(t, fileArgument(t, "file")) {
			w.includeTasks(t, name, at, module == "include_tasks")
		}
	case "include_role", "import_role":
		for _, name := range w.names(t, t.Arg("name", "role")) {
			w.includeRole(t, name, at, module == "include_role")
		}
	case "include_vars":
		for _, name := range w.names(t, fileArgument(t, "file")) {
			if path := FindFile(t, "vars", name); path != "" {
				w.variableFile(path, Included, nil)
			}
		}
	}
}

func fileArgument(t *Task, name string) *yaml.Node {
	if t.Args != nil && t.Args.Kind == yaml.ScalarNode {
		return t.Args
	}
	return t.Arg(name, "_raw_params")
}

// names returns the names that an argument may have: its text, with the literal elements of the
// loop in place of the loop's variable.
func (w *walker) names(t *Task, n *yaml.Node) []string {
	text := strings.TrimSpace(Scalar(n))
	if text == "" || !strings.Contains(text, "{{") || strings.Contains(text, "{%") {
		return nonEmpty(text)
	}
	name := Scalar(Field(t.Keys["loop_control"], "loop_var"))
	if name == "" {
		name = "item"
	}
	variable := regexp.MustCompile(`\{\{\s*` + regexp.QuoteMeta(name) + `(?:\.(\w+))?\s*\}\}`)
	if t.Loop == nil || t.Loop.Kind != yaml.SequenceNode || !variable.MatchString(text) {
		return []string{text}
	}
	var found []string
	for _, element := range t.Loop.Content {
		known := true
		value := variable.ReplaceAllStringFunc(text, func(use string) string {
			value := follow(element)
			if key := variable.FindStringSubmatch(use)[1]; key != "" {
				value = Field(element, key)
			}
			known = known && Scalar(value) != ""
			return Scalar(value)
		})
		if known {
			found = append(found, value)
		}
	}
	return found
}

func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

func (w *walker) includeTasks(t *Task, name string, at place, whenRun bool) {
	dirs := []string{at.base}
	if at.roleDir != "" {
		if at.handlers {
			dirs = append(dirs, filepath.Join(at.roleDir, "handlers"))
		}
		dirs = append(dirs, filepath.Join(at.roleDir, "tasks"), at.roleDir)
	}
	var paths []string
	templated := strings.Contains(name, "{{") || strings.Contains(name, "{%")
	if templated {
		paths = matching(dirs, name)
	} else {
		for _, dir := range dirs {
			if path := regular(filepath.Join(dir, name)); path != "" {
				paths = []string{path}
				break
			}
		}
		if paths == nil && whenRun && !filepath.IsAbs(name) {
			w.unit.Missing = append(w.unit.Missing, Fault{t.Position, "includes " + name + ", which does not exist; looked in " + strings.Join(slices.Compact(dirs), ", ")})
		}
	}
	if paths == nil && templated {
		w.unit.Unknown = append(w.unit.Unknown, Fault{t.Position, "the file " + name + " is known in a run only"})
	}
	for _, path := range paths {
		if whenRun {
			w.entry(path, at)
		}
		w.taskFile(path, at)
	}
}

func (w *walker) includeRole(t *Task, name string, at place, whenRun bool) {
	if strings.Contains(name, "{{") {
		w.unit.Unknown = append(w.unit.Unknown, Fault{t.Position, "the role " + name + " is known in a run only"})
		return
	}
	dir, collection := w.findRole(name, at)
	if dir == "" {
		if whenRun { // Ansible's own loader finds what is imported.
			w.unit.Missing = append(w.unit.Missing, Fault{t.Position, "includes the role " + name + ", which was not found" + w.meantRole(name, at)})
		}
		return
	}
	if whenRun && w.once("role "+dir) {
		w.unit.Entry = append(w.unit.Entry, reader.Content{Kind: "role", Path: dir, Role: roleName(name, dir, collection)})
	}
	parts := roleParts{Scalar(t.Arg("tasks_from")), Scalar(t.Arg("vars_from")), Scalar(t.Arg("defaults_from")), Scalar(t.Arg("handlers_from"))}
	w.role(dir, collection, parts, at)
}

// roleName returns the name by which a playbook elsewhere would find the role.
func roleName(name, dir, collection string) string {
	switch {
	case strings.Count(name, ".") >= 2:
		return name
	case collection == "":
		return dir
	default:
		return collection + "." + filepath.Base(dir)
	}
}

// entry adds a file for Ansible's own loader.
func (w *walker) entry(path string, at place) {
	kind := "tasks"
	if at.handlers {
		kind = "handlers"
	}
	e := reader.Content{Kind: kind, Path: path, Collections: at.collections}
	if !slices.ContainsFunc(w.unit.Entry, func(other reader.Content) bool { return other.Path == path }) {
		w.unit.Entry = append(w.unit.Entry, e)
	}
}

package source

import (
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
)

// includes walks the files that a task includes or imports.
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
			if templated(name) {
				w.later = append(w.later, func() { w.guessVariables(t, name) })
			} else if path := FindFile(t, "vars", name); path != "" {
				w.variableFile(path, Included)
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
// loop in place of the loop's variable. A name with other templates is put aside until all
// variables are known.
func (w *walker) names(t *Task, n *yaml.Node) []string {
	text := strings.TrimSpace(Scalar(n))
	if !templated(text) {
		return nonEmpty(text)
	}
	if t.Loop != nil && t.Loop.Kind == yaml.SequenceNode && t.With != "fileglob" {
		if names, known := w.substituted(text, t, 0); known {
			return names
		}
	}
	return []string{text}
}

func templated(name string) bool { return strings.Contains(name, "{{") || strings.Contains(name, "{%") }

func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

func (w *walker) includeTasks(t *Task, name string, at place, whenRun bool) {
	if templated(name) {
		w.later = append(w.later, func() { w.guessTasks(t, name, at, whenRun) })
		return
	}
	dirs := taskDirs(at)
	path := w.firstFile(dirs, name)
	if path == "" && whenRun && !filepath.IsAbs(name) {
		w.unit.Missing = append(w.unit.Missing, Fault{t.Position, "includes " + name + ", which does not exist; looked in " + strings.Join(slices.Compact(dirs), ", ")})
	}
	w.included(path, at, whenRun)
}

// included walks a file of tasks, "" for none.
func (w *walker) included(path string, at place, whenRun bool) {
	if path == "" {
		return
	}
	if whenRun {
		w.entry(path, at)
	}
	w.taskFile(path, at)
}

// taskDirs returns the directories in which files of tasks are looked for.
func taskDirs(at place) []string {
	dirs := []string{at.base}
	if at.roleDir != "" {
		if at.handlers {
			dirs = append(dirs, filepath.Join(at.roleDir, "handlers"))
		}
		dirs = append(dirs, filepath.Join(at.roleDir, "tasks"), at.roleDir)
	}
	return dirs
}

func (w *walker) firstFile(dirs []string, name string) string {
	for _, dir := range dirs {
		if path := regular(w.search.absolute(dir, name)); path != "" {
			return path
		}
	}
	return ""
}

func (w *walker) includeRole(t *Task, name string, at place, whenRun bool) {
	if templated(name) {
		w.later = append(w.later, func() { w.guessRoles(t, name, at, whenRun) })
		return
	}
	dir, collection := w.findRole(name, at)
	if dir == "" {
		if whenRun { // Ansible's own loader finds imported files.
			w.unit.Missing = append(w.unit.Missing, Fault{t.Position, "includes the role " + name + ", which was not found" + w.meantRole(name, at)})
		}
		return
	}
	if whenRun && w.once("role "+dir) {
		w.unit.Entry = append(w.unit.Entry, reader.Content{Kind: "role", Path: dir, Role: roleName(name, dir, collection)})
	}
	parts := roleParts{vars: Scalar(t.Arg("vars_from")), defaults: Scalar(t.Arg("defaults_from")), handlers: Scalar(t.Arg("handlers_from"))}
	from := w.names(t, t.Arg("tasks_from"))
	if len(from) == 0 {
		w.role(dir, collection, parts, at)
	}
	for _, parts.tasks = range from {
		if templated(parts.tasks) {
			w.later = append(w.later, func() { w.guessPart(t, dir, collection, parts, at) })
		} else {
			w.role(dir, collection, parts, at)
		}
	}
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
